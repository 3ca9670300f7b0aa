/** The runs of this process: those at work, those on their way in, and what becomes of one when it is over here. */

import type { Execution } from '../../engine/model/execution.ts';
import type { EngineHost, Runnable } from '../../engine/ports/execution-engine.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import { ActiveRun } from './active-run.ts';
import type { HeldExecution } from './held-execution.ts';
import type { JournalParts } from './journal-parts.ts';

export interface Runs {
  readonly size: number;
  /** How many places are taken: by those at work, and by those that have one and are still on their way in. */
  readonly taken: number;
  /** Takes a place until the run is over, or the work that was to bring it in has come to nothing. */
  takePlace<T>(work: () => MaybePromise<T>): MaybePromise<T>;
  get(id: string): ActiveRun | undefined;
  all(): readonly ActiveRun[];
  launch(held: HeldExecution, runnable: Runnable): ActiveRun;
  /** Counts work that is about to become a run. */
  coming<T>(id: string, work: Promise<T>): Promise<T>;
  /** Whether it is at work here, or on its way in. */
  knows(id: string): boolean;
  /**
   * In a storage of this process alone: the ids of what waits or is queued there. Nobody else will end it, so closing waits
   * for it too. Undefined in a shared storage.
   */
  readonly pending: Map<string, number | undefined> | undefined;
  /** One that was pending has ended. */
  settled(id: string): void;
  /** Resolves when nothing is at work here. @param withPending - and nothing is pending */
  idle(withPending: boolean): Promise<void>;
}

export interface RunsParts extends JournalParts {
  readonly host: EngineHost;
  /** It ended here. */
  ended(id: string, record: Execution): void;
  /** It was given up here. */
  givenUp(run: ActiveRun): void;
  /** What it gave could not be stored. */
  broken(held: HeldExecution, error: unknown): void;
}

export function createRuns(parts: RunsParts): Runs {
  // No Map: one whose entries come and go by the thousand leaves tables behind that keep what was in them for long.
  const active: ActiveRun[] = [];
  let reserved = 0;
  const pending = parts.host.storage.capabilities.shared ? undefined : new Map<string, number | undefined>();
  const coming = new Set<string>();
  let watching: { readonly withPending: boolean; readonly resolve: () => void }[] = [];

  const isIdle = (withPending: boolean) =>
    active.length === 0 && coming.size === 0 && (!withPending || pending === undefined || pending.size === 0);

  const find = (id: string) => active.find(({ held }) => held.execution.id === id);

  const tellIdle = () => {
    if (watching.length === 0 || !isIdle(false)) return;
    const told = watching;
    watching = told.filter(({ withPending }) => !isIdle(withPending));
    for (const { withPending, resolve } of told) if (isIdle(withPending)) resolve();
  };

  const leave = (run: ActiveRun, tell: () => void) => {
    const last = active.pop() as ActiveRun;
    if (last !== run) {
      active[run.place] = last;
      last.place = run.place;
    }
    tell();
    tellIdle();
  };

  const gone = (run: ActiveRun, record: Execution | undefined) => {
    const { id } = run.held.execution;
    if (record) {
      pending?.delete(id);
      parts.ended(id, record);
      return;
    }
    pending?.set(id, run.began);
    parts.givenUp(run);
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
    launch(held, runnable) {
      const { id } = held.execution;
      const began = pending?.get(id);
      const run = new ActiveRun(parts, began === undefined ? held : { ...held, began }, runnable);
      run.place = active.push(run) - 1;
      run.finished.then(
        (record) => leave(run, () => gone(run, record)),
        (error) =>
          leave(run, () => {
            parts.broken(held, error);
            gone(run, undefined);
          }),
      );
      return run;
    },
    takePlace(work) {
      reserved += 1;
      const letGo = () => {
        reserved -= 1;
      };
      try {
        const made = work();
        if (made instanceof Promise) return made.finally(letGo);
        letGo();
        return made;
      } catch (thrown) {
        letGo();
        throw thrown;
      }
    },
    async coming(id, work) {
      coming.add(id);
      try {
        return await work;
      } finally {
        coming.delete(id);
        tellIdle();
      }
    },
    knows: (id) => coming.has(id) || find(id) !== undefined,
    pending,
    settled(id) {
      pending?.delete(id);
      tellIdle();
    },
    idle(withPending) {
      if (isIdle(withPending)) return Promise.resolve();
      return new Promise((resolve) => {
        watching.push({ withPending, resolve });
      });
    },
  };
}
