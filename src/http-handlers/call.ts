/** A call: one request that found its route, with what the route's work may draw on. */

import type { Principal } from '../engine/model/token.ts';
import type { Clock } from '../engine/ports/clock.ts';
import type { HostInfo, PlainRequest } from '../engine/ports/host.ts';
import type { Logger } from '../engine/ports/logger.ts';
import type { Masking } from '../engine/ports/masking.ts';
import type { Orchestrator } from '../orchestrator.ts';
import type { BodyBudget, HeldBody } from './body-budget.ts';
import type { CorsRule } from './cors.ts';
import type { StreamSlots } from './stream-slots.ts';

/** What a handler is made of; the same for all its requests. */
export interface HandlerParts {
  readonly orchestrator: Orchestrator;
  /** Stands in front of every path; empty or such as `/service`. */
  readonly basePath: string;
  readonly maxBodyBytes: number;
  readonly bodies: BodyBudget;
  readonly syncTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly streams: StreamSlots;
  readonly cors: CorsRule | undefined;
  readonly setTimer: Clock['setTimer'];
  readonly monotonic: Clock['monotonic'];
  readonly logger: Logger;
  /** Takes the orchestrator's secrets out of a text. */
  readonly mask: Masking['text'];
  /** A value as JSON text, without the orchestrator's secrets: every answer and every event is written by it. */
  readonly toJson: Masking['json'];
}

export interface Call {
  readonly parts: HandlerParts;
  readonly request: PlainRequest;
  readonly host: HostInfo;
  /** Values of the path's parameters, decoded once. */
  readonly params: Readonly<Record<string, string>>;
  /** Who calls; undefined on a public route. */
  readonly principal: Principal | undefined;
  /** In every answer's `X-Request-Id`, and in the log. */
  readonly requestId: string;
  /** What the body holds in memory: released when the answer is made, or as soon as what came with it is stored. */
  readonly held: HeldBody;
}
