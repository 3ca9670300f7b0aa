/** API tokens: their scopes, what is stored of one, and who presents it. */

/** Every scope that a token can hold; `admin` grants all of them. */
export const SCOPES = [
  'read:ensembles',
  'read:agents',
  'read:executions',
  'read:components',
  'read:state',
  'write:ensembles',
  'write:agents',
  'write:components',
  'write:state',
  'execute:ensembles',
  'execute:agents',
  'admin',
] as const;

export type Scope = (typeof SCOPES)[number];

/** Plans by name; what each allows is decided where limits are kept. */
export const PLANS = ['free', 'pro', 'enterprise'] as const;
export type Plan = (typeof PLANS)[number];

/** A token as it is stored: its value is never kept. */
export interface StoredToken {
  /** `tok_` and 26 characters that sort by time. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
  /** SHA-256 of the value, 64 hexadecimal characters. */
  readonly digest: string;
  /** The value's last four characters, for people who look for it in a list. */
  readonly last4: string;
  /** Unix ms. */
  readonly createdAt: number;
  /** Unix ms; absent when it never expires. */
  readonly expiresAt?: number;
  /** Unix ms, to the minute; absent until it was used. */
  readonly lastUsed?: number;
}

/** Who a verified token speaks for. */
export interface Principal {
  readonly tokenId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly plan: Plan;
}

/** Whether a principal may do what needs `scope`. */
export function hasScope(principal: Principal, scope: Scope): boolean {
  return principal.scopes.includes(scope) || principal.scopes.includes('admin');
}
