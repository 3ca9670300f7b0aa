/** The types of requests and responses on Node: those of `node:http`, `node:http2`, Express and Fastify's raw pair. */

import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request, with the properties that frameworks may have added. */
export type NodeRequest = IncomingMessage & {
  /** The result of a body parser that has read the body. */
  readonly body?: unknown;
  /** The part of the path that Express removed from `url` for a mount. */
  readonly baseUrl?: unknown;
};

export type NodeResponse = ServerResponse;
