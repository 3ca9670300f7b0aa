/** One world of the engine suite: a fresh store, processes that come and go on it, and one clock for all of them. */

import { type Execution, isFinal } from '../../../engine/model/execution.ts';
import type { MaybePromise } from '../../../engine/ports/operation.ts';
import type { Storage } from '../../../engine/ports/storage.ts';
import { hostTurn, type ManualClock, manualClock } from '../manual-clock.ts';
import { createLedger, type Ledger } from './ledger.ts';
import type { Life } from './life.ts';
import { createProcess, type Process, type ProcessOptions, type Subjects } from './process.ts';

/** What the processes of one test share. */
export interface SuiteStore {
  /** Another process's handle on the same data. */
  connect(): MaybePromise<Storage>;
  /** Called behind the test, when all handles are closed. */
  end?(): MaybePromise<void>;
}

export interface WorldParts extends Subjects {
  readonly create: () => MaybePromise<SuiteStore>;
}

export interface World {
  readonly clock: ManualClock;
  readonly ledger: Ledger;
  /** A handle that no process has: what anybody can read. */
  readonly reader: Storage;
  open(options: ProcessOptions): Promise<Process>;
  /** Does something from outside after so many ms. */
  later(ms: number, work: () => Promise<unknown>): void;
  /** Lets everything happen that can happen at this instant. */
  settle(): Promise<void>;
  /** Moves time on by `ms`, and lets everything happen on the way. */
  advance(ms: number): Promise<void>;
  /** Moves time on until something holds. @throws Error when it does not within `mostMs` of the world's time */
  until(what: string, holds: () => MaybePromise<boolean>, mostMs?: number): Promise<void>;
  /** The record of an execution once it has ended. */
  ended(id: string, mostMs?: number): Promise<Execution>;
}

/** Turns of the event loop without anything under way, before nothing more is expected. */
const QUIET_TURNS = 3;
const MOST_MS = 3_600_000;

/** Opens a world, does something in it, checks what always holds, and takes the world away. */
export async function inWorld<T>(parts: WorldParts, body: (world: World) => Promise<T>): Promise<T> {
  const clock = manualClock();
  const ledger = createLedger();
  const store = await parts.create();
  const reader = await store.connect();
  const handles: Storage[] = [reader];
  const lives: Life[] = [];
  let closing: Promise<unknown> = Promise.resolve();
  let outside: Promise<unknown> = Promise.resolve();

  const settle = async () => {
    let made = -1;
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      await closing;
      await outside;
      await hostTurn();
      // A store that answers at once is never seen at work: what it was asked for meanwhile tells.
      const calls = lives.reduce((sum, life) => sum + life.calls('any'), 0);
      quiet = made === calls && lives.every(({ inFlight }) => inFlight === 0) ? quiet + 1 : 0;
      made = calls;
    }
  };

  const open = async (options: ProcessOptions): Promise<Process> => {
    await closing;
    const handle = await store.connect();
    handles.push(handle);
    const made = createProcess({
      ...parts,
      options,
      handle,
      clock,
      ledger,
      number: lives.length + 1,
      // What the operating system does behind a process that is gone: it closes what the process had open.
      onDeath(life) {
        closing = closing.then(async () => {
          while (life.inFlight > 0) await hostTurn();
          await handle.close();
        });
      },
    });
    lives.push(made.life);
    return made;
  };

  const step = async (mostMs: number): Promise<number> => {
    await settle();
    const next = clock.nextIn;
    if (next === undefined || next > mostMs) {
      await clock.advance(mostMs);
      await settle();
      return mostMs;
    }
    await clock.advanceToNext();
    await settle();
    return next;
  };

  const until: World['until'] = async (what, holds, mostMs = MOST_MS) => {
    const end = clock.monotonic() + mostMs;
    await settle();
    while (!(await holds())) {
      const left = end - clock.monotonic();
      if (left <= 0) throw new Error(`${what}: not within ${mostMs} ms`);
      if (clock.nextIn === undefined) throw new Error(`${what}: nothing is going to happen any more`);
      await step(left);
    }
  };

  const world: World = {
    clock,
    ledger,
    reader,
    open,
    later(ms, work) {
      clock.setTimer(ms, () => {
        outside = outside.then(work);
      });
    },
    settle,
    async advance(ms) {
      for (let left = ms; left > 0; ) left -= await step(left);
      await settle();
    },
    until,
    async ended(id, mostMs) {
      let record: Execution | undefined;
      const look = async () => {
        record = await reader.getExecution(id);
        return record !== undefined && isFinal(record.status);
      };
      await until(`the end of ${id}`, look, mostMs);
      return record as Execution;
    },
  };
  try {
    const given = await body(world);
    ledger.check();
    return given;
  } finally {
    for (const life of lives) {
      life.die();
      life.goOn();
    }
    await settle();
    for (const handle of handles) await handle.close();
    await store.end?.();
  }
}
