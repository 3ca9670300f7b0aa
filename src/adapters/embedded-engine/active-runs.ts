/** The runs of this process: the active ones, and the ones that are about to start. */

import type { LoadedDefinition } from '../../engine/execution/execution-engine.port.ts';
import type { NewExecution } from '../../engine/execution/stored-execution.ts';
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
  readonly perProcess: PerProcess;
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
  const perProcess = new PerProcess();
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
      if (perProcess.isUsed) perProcess.leave(run.held.execution);
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
    perProcess,
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

type Loaded = Pick<LoadedDefinition, 'definition' | 'perProcess'>;

/** `perProcess` of ensembles: how many runs of a definition this process has at once, besides the limits over all processes. */
export class PerProcess {
  /** By the hash of a definition that has a limit, as this process has come to know them. */
  readonly #known = new Map<string, { readonly max: number; readonly held: Set<string> }>();

  /** Takes a place for an execution. @returns false if none is free */
  take({ definition, perProcess: max = Number.POSITIVE_INFINITY }: Loaded, id: string): boolean {
    const of = this.#known.get(definition.version) ?? { max, held: new Set<string>() };
    this.#known.set(definition.version, of);
    if (of.held.has(id)) return true;
    if (of.held.size >= max) return false;
    of.held.add(id);
    return true;
  }

  leave({ version, id }: Pick<NewExecution, 'version' | 'id'>): void {
    this.#known.get(version)?.held.delete(id);
  }

  /** Whether this process knows a definition with a limit. */
  get isUsed(): boolean {
    return this.#known.size > 0;
  }

  /** The definitions with a limit. */
  get known(): readonly string[] {
    return [...this.#known.keys()];
  }

  /** The definitions without a free place: nothing of them is claimed. */
  get full(): readonly string[] {
    return [...this.#known].flatMap(([version, { max, held }]) => (held.size >= max ? [version] : []));
  }

  /** How many executions may be claimed at once, so that no definition is over its limit. */
  get room(): number {
    let room = Number.POSITIVE_INFINITY;
    for (const { max, held } of this.#known.values()) if (held.size < max) room = Math.min(room, max - held.size);
    return room;
  }
}
