/** An inbound webhook as it is served: a trigger whose secrets are known. It is kept in memory only. */

import type { Json, JsonObject } from '../base/json/json.ts';
import type { WebhookTrigger } from '../ensemble/ensemble.ts';

/** Every webhook of a definition that is created at run time is below this path: it can't take over a route of the app. */
export const WEBHOOK_ROOT = '/webhooks/';

/** The kinds of bodies that a webhook can take. */
export type BodyKind = 'json' | 'form' | 'text';

/** The content type of each kind, as a sender writes it. */
export const BODY_TYPES: Readonly<Record<BodyKind, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  text: 'text/plain',
};

/** The HTTP methods of a trigger. */
export function methodsOf({ methods = ['POST'] }: Pick<WebhookTrigger, 'methods'>): readonly string[] {
  return methods;
}

/** Whose signature a webhook takes: our own, or that of a well-known sender. */
export type SignatureScheme = 'service' | 'github' | 'stripe' | 'slack' | 'shopify' | 'twilio' | 'standard';

export const WEBHOOK_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export const SIGNATURE_SCHEMES: readonly SignatureScheme[] = [
  'service',
  'github',
  'stripe',
  'slack',
  'shopify',
  'twilio',
  'standard',
];

/** How the sender of a request proves who it is. Any one of several secrets will do. */
export type WebhookAccess =
  | { readonly type: 'public' }
  | { readonly type: 'bearer' | 'basic'; readonly secrets: readonly string[] }
  | { readonly type: 'oauth'; readonly issuer: string; readonly audience: string }
  | { readonly type: 'signature'; readonly scheme: SignatureScheme; readonly secrets: readonly string[] };

export interface Webhook {
  /** The canonical path. */
  readonly path: string;
  readonly methods: readonly string[];
  readonly access: WebhookAccess;
  /** The answer is 202, before the execution ends. */
  readonly isAsync: boolean;
  /** Undefined: the limit of the handler. */
  readonly maxBodyBytes: number | undefined;
  readonly accept: readonly BodyKind[];
  /** Undefined for a webhook that starts an execution. */
  readonly delivery: WebhookDelivery | undefined;
}

/** What the expressions of a trigger can read of a request. */
export interface FindScope {
  readonly body: Json;
  readonly query: JsonObject;
  /** Names in lower case. */
  readonly headers: JsonObject;
}

/** A signal that a webhook sends to an execution. */
export interface WebhookDelivery {
  readonly signal: string;
  readonly by: 'tag' | 'id';
  /** The text of the expression. */
  readonly text: string;
  /** The tag or the id; undefined if the request lacks a part of it. @param now - Unix ms @throws EXPRESSION_ERROR */
  findTarget(request: FindScope, now: number): string | undefined;
  readonly orStart: boolean;
}
