/** A call: one request with its route, and what the route's function may use. */

import type { RequestKeys } from '../engine/access/request-keys.port.ts';
import type { FindAddress } from '../engine/access/rules/client-address.ts';
import type { Principal, TokenScope } from '../engine/access/token.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import type { HostInfo, PlainRequest } from '../engine/host/host.port.ts';
import type { Logger } from '../engine/host/logger.port.ts';
import type { Masking, Measured } from '../engine/host/masking.port.ts';
import type { Orchestrator } from '../orchestrator/create-orchestrator.ts';
import type { Authenticate } from './access/host-principal.ts';
import type { CorsRule } from './reply/cors.ts';
import type { StreamSlots } from './reply/stream-slots.ts';
import type { ByteBudget, HeldBytes, SenderBudgets } from './request/byte-budget.ts';

/** The parts of a handler; all its requests share them. */
export interface HandlerDependencies {
  readonly orchestrator: Orchestrator;
  /** The header of an API token besides `Authorization`, in lower case, on the routes that take it. */
  readonly apiKeyHeader: string;
  /** Precedes every path; empty, or such as `/service`. */
  readonly basePath: string;
  readonly maxBodyBytes: number;
  readonly bodies: ByteBudget;
  /** The part of `bodies` for webhooks, whose senders are often known by the body only. */
  readonly webhookBodies: SenderBudgets;
  /** What responses hold that are not sent. */
  readonly unsent: ByteBudget;
  readonly syncTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly streams: StreamSlots;
  readonly cors: CorsRule | undefined;
  /** Finds the address of a client that calls through trusted proxies. */
  readonly findAddress: FindAddress;
  /** The host's own check of callers. */
  readonly authenticate: Authenticate | undefined;
  /** Whether every caller has the scopes that read at most. */
  readonly readOnly: boolean;
  readonly setTimer: Clock['setTimer'];
  readonly monotonic: Clock['monotonic'];
  readonly logger: Logger;
  /** Masks the orchestrator's secrets in a text. */
  readonly mask: Masking['text'];
  /** A value as JSON text with the orchestrator's secrets masked: writes every response and every event. */
  readonly toJson: Masking['json'];
  readonly openFrom: Masking['openFrom'];
  /** Runs a request with an `Idempotency-Key`. Undefined for an orchestrator that does not come from `createOrchestrator`. */
  readonly once: RequestKeys['once'] | undefined;
  /** Sends what executions have stored for their receivers. Undefined as `once`. */
  readonly deliver: (() => Promise<void>) | undefined;
  /** What is measured. Undefined as `once`. */
  readonly measured: Measured | undefined;
}

/** Who may use a route. */
export interface RouteAccess {
  /** The scope that the token must hold; `any` takes every valid token, and `public` needs no token. */
  readonly scope: TokenScope | 'any' | 'public';
  /** Whether a ticket in the query (`?ticket=`) counts in place of an API token. */
  readonly takesTicket?: true;
  /** Whether an API token may also be in the header `X-SERVICE-API-KEY` (with the brand in place of `SERVICE`). */
  readonly takesApiKey?: true;
  /** About how many bytes the response may have. It is not built before it fits together with the unsent responses. */
  readonly maxBytes?: number;
}

export interface HttpCall {
  readonly dependencies: HandlerDependencies;
  readonly request: PlainRequest;
  readonly host: HostInfo;
  readonly route: RouteAccess;
  /** The values of the path's parameters, decoded once. */
  readonly params: Readonly<Record<string, string>>;
  /** The caller; undefined on a public route. */
  readonly principal: Principal | undefined;
  /** In every response's `X-Request-Id`, and in the log. */
  readonly requestId: string;
  /** The memory that the body holds: released when the response is ready, or before that, when the body's content is stored. */
  readonly held: HeldBytes;
}
