/** A call: one request that found its route, with what the route's work may draw on. */

import type { Clock } from '../engine/ports/clock.ts';
import type { HostInfo, PlainRequest } from '../engine/ports/host.ts';
import type { Logger } from '../engine/ports/logger.ts';
import type { Orchestrator } from '../orchestrator.ts';
import type { CorsRule } from './cors.ts';
import type { StreamSlots } from './stream-slots.ts';

/** What a handler is made of; the same for all its requests. */
export interface HandlerParts {
  readonly orchestrator: Orchestrator;
  /** Stands in front of every path; empty or such as `/service`. */
  readonly basePath: string;
  readonly maxBodyBytes: number;
  readonly syncTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly streams: StreamSlots;
  readonly cors: CorsRule | undefined;
  readonly setTimer: Clock['setTimer'];
  readonly logger: Logger;
}

export interface Call {
  readonly parts: HandlerParts;
  readonly request: PlainRequest;
  readonly host: HostInfo;
  /** Values of the path's parameters, decoded once. */
  readonly params: Readonly<Record<string, string>>;
  /** Of the token that was presented; empty on a public route. */
  readonly tokenId: string;
  /** In every answer's `X-Request-Id`, and in the log. */
  readonly requestId: string;
}
