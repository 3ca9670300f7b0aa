/** The project that `ensemble serve` serves: one orchestrator at a time, which a reload replaces. */

import { messageOf } from '../../engine/base/errors.ts';
import type { Storage } from '../start.ts';
import * as start from '../start.ts';

export interface LiveProject {
  /** The current one. */
  readonly orchestrator: start.Orchestrator;
  /** Gives each request to the current orchestrator. */
  readonly listener: ReturnType<typeof start.nodeListener>;
  /**
   * Continues with other definitions and scripts on the same storage. Running steps get 2 s to end; then the new orchestrator resumes
   * their executions.
   * @throws what `createOrchestrator` and `ready` throw: then nothing has changed
   */
  replace(found: start.ProjectOptions): Promise<void>;
  close(graceMs: number): Promise<void>;
}

export interface LiveProjectDependencies {
  readonly storage: start.Storage | undefined;
  /** Called before the storage closes, after the last run. */
  readonly last: () => Promise<void>;
  /** Whether `replace` may be called. */
  readonly isReplaceable: boolean;
  /** Whether the dashboard is served. */
  readonly dashboard: boolean;
}

/** The time that running steps get to end before another orchestrator resumes their executions. */
const REPLACE_GRACE_MS = 2_000;

export function startLiveProject(
  found: start.ProjectOptions,
  { storage: given, last, isReplaceable, dashboard }: LiveProjectDependencies,
): LiveProject {
  const storage = isReplaceable && given ? keepOpen(given) : given;
  const replaced: Promise<void>[] = [];
  let isClosing = false;
  const open = (options: start.ProjectOptions) => {
    // A replaced orchestrator may close after the stop has begun, while the current one still has responses to give.
    const isLast = () => isClosing && orchestrator === current.orchestrator;
    const engine = closeAfter(options.engine ?? start.embeddedEngine(), async () => (isLast() ? last() : undefined));
    const orchestrator = start.startOrchestrator({ ...start.KEEPS_STACKS, ...options, storage, engine });
    return {
      orchestrator,
      listener: start.nodeListener(orchestrator, { dashboard }),
      logger: options.logger || undefined,
    };
  };
  let current = open(found);
  return {
    get orchestrator() {
      return current.orchestrator;
    },
    listener: (request, response) => current.listener(request, response),
    async replace(options) {
      const next = open(options);
      try {
        await next.orchestrator.ready();
      } catch (error) {
        await next.orchestrator.close({ grace: 0 });
        throw error;
      }
      const { orchestrator, logger } = current;
      current = next;
      const onFailure = (error: unknown) => logger?.warn({ err: error }, `a reload: ${messageOf(error)}`);
      replaced.push(orchestrator.close({ grace: REPLACE_GRACE_MS }).catch(onFailure));
    },
    async close(grace) {
      isClosing = true;
      await Promise.all([...replaced, current.orchestrator.close({ grace })]);
      if (storage !== given) await given?.close();
    },
  };
}

type Optional = 'newId' | 'pause' | 'resume' | 'pauseAll' | 'resumeAll' | 'pauses' | 'wake';

/** The methods that an engine may lack. */
function forwarded(attached: ReturnType<start.ExecutionEngine['attach']>, ...names: readonly Optional[]) {
  const known = names.filter((name) => attached[name]);
  const call =
    (name: Optional) =>
    (...given: unknown[]) =>
      (attached[name] as (...given: unknown[]) => unknown)(...given);
  return Object.fromEntries(known.map((name) => [name, call(name)])) as Pick<typeof attached, Optional>;
}

/** An engine that also waits for `last`, after its last run, before the storage is closed. */
function closeAfter(engine: start.ExecutionEngine, last: () => Promise<void>): start.ExecutionEngine {
  return {
    attach(host) {
      const attached = engine.attach(host);
      return {
        runRecords: attached.runRecords,
        ...(attached.records && { records: attached.records }),
        ...forwarded(attached, 'newId'),
        get active() {
          return attached.active;
        },
        begin: (...given) => attached.begin(...given),
        open: () => attached.open(),
        whenEnded: (...given) => attached.whenEnded(...given),
        cancel: (...given) => attached.cancel(...given),
        signal: (...given) => attached.signal(...given),
        ...forwarded(attached, 'pause', 'resume', 'pauseAll', 'resumeAll', 'pauses', 'wake'),
        runDue: (...given) => attached.runDue(...given),
        async close(graceMs) {
          try {
            await attached.close(graceMs);
          } finally {
            await last();
          }
        },
      };
    },
  };
}

/**
 * Returns the storage, whose `close` does nothing. It counts as shared: an orchestrator that is closed leaves its executions to the next
 * one, also where the storage is in memory.
 */
function keepOpen(storage: Storage): Storage {
  const own = { capabilities: { ...storage.capabilities, shared: true }, close() {} };
  // Methods run with the storage itself as `this`, so that classes with private fields work.
  return new Proxy({} as Storage, {
    get(_empty, key) {
      if (Object.hasOwn(own, key)) return own[key as keyof typeof own];
      const value: unknown = Reflect.get(storage, key);
      return typeof value === 'function' ? value.bind(storage) : value;
    },
    has: (_empty, key) => key in storage,
  });
}
