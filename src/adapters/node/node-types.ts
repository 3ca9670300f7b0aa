/** What a Node listener sees of a request and a response: `node:http`, `node:http2`, Express and Fastify's raw pair all fit. */

import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request, with what frameworks may have put on it. */
export type NodeRequest = IncomingMessage & {
  /** What a body parser made of the body, when one has read it already. */
  readonly body?: unknown;
  /** The path in front of `url` that Express has cut off for a mount. */
  readonly baseUrl?: unknown;
};

export type NodeResponse = ServerResponse;
