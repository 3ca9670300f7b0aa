/** API tokens: their scopes, their stored form, and the principal that a token identifies. */

import type { Plan } from './plan.ts';

/** All scopes of tokens. `admin` includes all other scopes. */
export const SCOPES = [
  'read:ensembles',
  'read:agents',
  'read:executions',
  'read:components',
  'read:state',
  'read:metrics',
  'write:ensembles',
  'write:agents',
  'write:components',
  'write:state',
  'execute:ensembles',
  'execute:agents',
  'admin',
] as const;

export type TokenScope = (typeof SCOPES)[number];

/** A token as it is stored, without its value. */
export interface StoredToken {
  /** `tok_` and 26 characters that sort by time. */
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  readonly plan: Plan;
  /** SHA-256 of the value, 64 hexadecimal characters. */
  readonly digest: string;
  /** The last four characters of the value, so that people recognize the token in a list. */
  readonly last4: string;
  /** Unix ms. */
  readonly createdAt: number;
  /** Unix ms. Absent if the token never expires. */
  readonly expiresAt?: number;
  /** Unix ms, to the minute. Absent until the first use. */
  readonly lastUsed?: number;
}

/** The id of the stored key that signs tickets. It is kept like a token, with the key as its `digest`, and is never listed. */
export const TICKET_KEY_ID = 'key_event-tickets';

/** The identity of a verified token. */
export interface Principal {
  readonly tokenId: string;
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  readonly plan: Plan;
}

/** Whether a principal has a scope. `admin` has all scopes. */
export function hasScope(principal: Pick<Principal, 'scopes'>, scope: TokenScope): boolean {
  return principal.scopes.includes(scope) || principal.scopes.includes('admin');
}
