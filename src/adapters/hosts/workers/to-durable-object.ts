/** `toDurableObject()`: turns an orchestrator into the class of a Durable Object. */

import type { DurableObjectContext, HttpHandler } from '../../../engine/host/host.port.ts';
import { answerWith } from './to-worker.ts';

/** What an object needs of its orchestrator. Every `Orchestrator` has it. */
export interface WakeableOrchestrator {
  ready(): Promise<void>;
  runDue(): Promise<unknown>;
}

/** What an instance of the class serves. */
export interface DurableObjectParts<O extends WakeableOrchestrator = WakeableOrchestrator> {
  /** Its storage is `durableObjectStorage(ctx)`. */
  readonly orchestrator: O;
  /** Answers the requests to the object. Without it, they are answered with 404. */
  readonly handler?: HttpHandler;
}

export interface OrchestratingObject<O extends WakeableOrchestrator = WakeableOrchestrator> {
  /** For methods that a subclass adds. */
  readonly orchestrator: O;
  fetch(request: Request): Promise<Response>;
  /** The platform calls it at the instant that the storage asked for. */
  alarm(): Promise<void>;
}

/**
 * Creates the class of a Durable Object that runs executions. The object's alarm resumes executions that wait, and executions whose
 * instance has ended, without another request.
 *
 * @param create - creates the orchestrator of one instance. It is called at the first event of the instance, and again if it threw
 *
 * @example
 * ```ts no-run
 * import { createHandler, createOrchestrator } from 'ensemble-orchestrator';
 * import { durableObjectStorage, toDurableObject } from 'ensemble-orchestrator/workers';
 *
 * export const Workflows = toDurableObject((ctx) => {
 *   const orchestrator = createOrchestrator({ storage: durableObjectStorage(ctx) });
 *   return { orchestrator, handler: createHandler(orchestrator) };
 * });
 * ```
 */
export function toDurableObject<Context extends DurableObjectContext, Env, O extends WakeableOrchestrator>(
  create: (ctx: Context, env: Env) => DurableObjectParts<O>,
): new (
  ctx: Context,
  env: Env,
) => OrchestratingObject<O> {
  return class implements OrchestratingObject<O> {
    readonly #ctx: Context;
    readonly #env: Env;
    #parts: DurableObjectParts<O> | undefined;

    constructor(ctx: Context, env: Env) {
      this.#ctx = ctx;
      this.#env = env;
    }

    get orchestrator(): O {
      return this.#created().orchestrator;
    }

    async fetch(request: Request): Promise<Response> {
      const { handler } = this.#created();
      if (!handler) return new Response('not found', { status: 404 });
      return answerWith(handler, request, this.#ctx);
    }

    async alarm(): Promise<void> {
      const { orchestrator } = this.#created();
      // If this fails, the platform repeats the alarm.
      await orchestrator.ready();
      // The next alarm can't fire before this method returns, so it does not wait for the runs.
      this.#ctx.waitUntil(orchestrator.runDue());
    }

    #created(): DurableObjectParts<O> {
      this.#parts ??= create(this.#ctx, this.#env);
      return this.#parts;
    }
  };
}
