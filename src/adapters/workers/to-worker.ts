/** `toWorker()`: a handler as the module that a Worker exports. */

import type { HttpHandler } from '../../engine/ports/host.ts';

/** What of a Worker's execution context is used. */
export interface WorkerContext {
  waitUntil(promise: Promise<unknown>): void;
}

export interface Worker<Env> {
  fetch(request: Request, env: Env, context: WorkerContext): Promise<Response>;
}

/**
 * Serves a handler from a Worker: the caller's address (as Cloudflare's edge reports it) and `waitUntil` go along, so that a run
 * goes on when the answer is sent or its reader is gone.
 *
 * @param source - a handler, or what makes one from the Worker's bindings: called once for each `env`, again when it threw
 *
 * @example
 * ```ts no-run
 * import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
 * import { toWorker } from 'ensemble-orchestrator/workers';
 *
 * export default toWorker((env: { API_KEY: string }) =>
 *   createHandler(createOrchestrator({ secrets: { API_KEY: env.API_KEY } })),
 * );
 * ```
 */
export function toWorker<Env extends object = object>(
  source: HttpHandler | ((env: Env) => HttpHandler | Promise<HttpHandler>),
): Worker<Env> {
  const made = new WeakMap<Env, HttpHandler>();
  const handlerFor = async (env: Env): Promise<HttpHandler> => {
    if (typeof source !== 'function') return source;
    const known = made.get(env);
    if (known) return known;
    // The handler is kept, never its promise: a Worker's request can't await what another request began.
    const handler = await source(env);
    const first = made.get(env);
    if (first) return first;
    made.set(env, handler);
    return handler;
  };
  return {
    async fetch(request, env, context) {
      const handler = await handlerFor(env);
      return handler.fetch(request, {
        ip: request.headers.get('cf-connecting-ip') ?? undefined,
        waitUntil: (promise) => context.waitUntil(promise),
      });
    },
  };
}
