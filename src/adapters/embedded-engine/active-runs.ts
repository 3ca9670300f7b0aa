/** The runs of this process: the active ones, and the ones that are about to start. */

import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { ActiveRun } from '../../engine/running/active-run.ts';
import type { HeldExecution } from '../../engine/running/held-execution.ts';

/** An execution that a worker of this process holds. */
export interface WorkersExecution extends HeldExecution {
  readonly worker: string;
}

export type Run = ActiveRun<WorkersExecution>;

export interface ActiveRuns {
  readonly size: number;
  /** How many places are taken: by active runs, and by work that reserved a place for a run. */
  readonly taken: number;
  /** Reserves a place while the work runs: the run that it launches takes the place over. */
  takePlace<T>(work: () => MaybePromise<T>): MaybePromise<T>;
  get(id: string): Run | undefined;
  all(): readonly Run[];
  add(run: Run): void;
  /** Call `checkIdle` after what follows from the end of the run. */
  remove(run: Run): void;
  /** Counts an execution as starting while the work runs. */
  starting<T>(id: string, work: Promise<T>): Promise<T>;
  /** Whether an execution is active or starting here. */
  has(id: string): boolean;
  /**
   * Ids of the executions that wait or are queued, with the monotonic instant at which they began here. Only for a storage that
   * no other process shares: nothing else ends those executions, so `close` waits for them. Undefined for a shared storage.
   */
  readonly pending: Map<string, number | undefined> | undefined;
  /** Resolves when no run is active or starting. @param withPending - and no execution is pending */
  idle(withPending: boolean): Promise<void>;
  /** Resolves the promises of `idle` if that is so now. */
  checkIdle(): void;
}

export function createActiveRuns(isShared: boolean): ActiveRuns {
  // Not a Map: with thousands of insertions and deletions, its old hash tables keep removed entries in memory for long.
  const active: Run[] = [];
  let reserved = 0;
  const pending = isShared ? undefined : new Map<string, number | undefined>();
  const starting = new Set<string>();
  let watching: { readonly withPending: boolean; readonly resolve: () => void }[] = [];

  const isIdle = (withPending: boolean) =>
    active.length === 0 && starting.size === 0 && (!withPending || pending === undefined || pending.size === 0);

  const find = (id: string) => active.find(({ held }) => held.execution.id === id);

  const checkIdle = () => {
    if (watching.length === 0 || !isIdle(false)) return;
    const waiting = watching;
    watching = waiting.filter(({ withPending }) => !isIdle(withPending));
    for (const { withPending, resolve } of waiting) if (isIdle(withPending)) resolve();
  };

  return {
    get size() {
      return active.length;
    },
    get taken() {
      return active.length + reserved;
    },
    get: find,
    all: () => [...active],
    add(run) {
      run.place = active.push(run) - 1;
    },
    remove(run) {
      const last = active.pop() as Run;
      if (last === run) return;
      active[run.place] = last;
      last.place = run.place;
    },
    takePlace(work) {
      reserved += 1;
      const unreserve = () => {
        reserved -= 1;
      };
      try {
        const made = work();
        if (made instanceof Promise) return made.finally(unreserve);
        unreserve();
        return made;
      } catch (thrown) {
        unreserve();
        throw thrown;
      }
    },
    async starting(id, work) {
      starting.add(id);
      try {
        return await work;
      } finally {
        starting.delete(id);
        checkIdle();
      }
    },
    has: (id) => starting.has(id) || find(id) !== undefined,
    pending,
    idle(withPending) {
      if (isIdle(withPending)) return Promise.resolve();
      return new Promise((resolve) => {
        watching.push({ withPending, resolve });
      });
    },
    checkIdle,
  };
}
