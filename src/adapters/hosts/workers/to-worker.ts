/** `toWorker()`: turns a handler into the module that a Worker exports. */

import type { HttpHandler } from '../../../engine/host/host.port.ts';

/** The part of a Worker's execution context that is used. */
export interface WorkerContext {
  waitUntil(promise: Promise<unknown>): void;
}

export interface Worker<Env> {
  fetch(request: Request, env: Env, context: WorkerContext): Promise<Response>;
}

/**
 * Serves a handler in a Worker. It passes the caller's address, as Cloudflare's edge reports it, and `waitUntil` to the handler. So a run
 * continues after the answer is sent or its reader is gone.
 *
 * @param source - a handler, or a function that creates one from the Worker's bindings. The function is called once for each `env`, and
 *   again if it threw
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
    // Keeps the handler, not its promise: a request of a Worker can't await what another request began.
    const handler = await source(env);
    const first = made.get(env);
    if (first) return first;
    made.set(env, handler);
    return handler;
  };
  return {
    async fetch(request, env, context) {
      return answerWith(await handlerFor(env), request, context);
    },
  };
}

/** Calls a handler with the caller's address, as Cloudflare's edge reports it, and with `waitUntil`. */
export function answerWith(handler: HttpHandler, request: Request, context: WorkerContext): Promise<Response> {
  return handler.fetch(request, {
    ip: request.headers.get('cf-connecting-ip') ?? undefined,
    waitUntil: (promise) => context.waitUntil(promise),
  });
}
