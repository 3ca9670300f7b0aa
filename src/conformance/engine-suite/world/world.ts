/** One world of the engine suite: empty data, the simulated processes that work on it, and one clock for all of them. */

import { hostTurn, type ManualClock } from '../../../adapters/clock/manual-clock.ts';
import { type Execution, isFinal } from '../../../engine/execution/execution.ts';
import type { MaybePromise } from '../../../engine/operation/operation.port.ts';
import { controlProcess, type ProcessControl } from '../../../testing-kit/processes/process-control.ts';
import type { EngineProcessOptions, EngineWorld, WorldReader } from './engine-world.ts';
import { createHistory, type History } from './history.ts';
import { createProcess, type Process, type ProcessOptions } from './process.ts';
import type { CreateSubject } from './subject.ts';

export interface WorldParts<
  O extends EngineProcessOptions = EngineProcessOptions,
  R extends WorldReader = WorldReader,
> {
  readonly createSubject: CreateSubject;
  readonly openWorld: () => MaybePromise<EngineWorld<O, R>>;
}

export interface World<O extends EngineProcessOptions = EngineProcessOptions, R extends WorldReader = WorldReader> {
  readonly clock: ManualClock;
  readonly history: History;
  /** Belongs to no process. */
  readonly reader: R;
  /** See {@link EngineWorld.takeoverMs}. */
  readonly takeoverMs: number;
  open(options: ProcessOptions<O>): Promise<Process>;
  /** Runs `work` outside of every process, after `ms`. */
  later(ms: number, work: () => Promise<unknown>): void;
  /** Runs everything that can happen at the present instant. */
  settle(): Promise<void>;
  /** Advances time by `ms`, and runs everything that becomes due. */
  advance(ms: number): Promise<void>;
  /** Advances time until `holds()` is true. @throws Error when it is not within `maxMs` of the world's time */
  until(what: string, holds: () => MaybePromise<boolean>, maxMs?: number): Promise<void>;
  /** Waits until an execution has ended. @returns its record */
  ended(id: string, maxMs?: number): Promise<Execution>;
}

/** Turns of the event loop with nothing in flight after which the world counts as settled. */
const QUIET_TURNS = 3;
const MAX_MS = 3_600_000;

/** Opens a world, runs `body` in it, checks the rules that always hold, and closes the world. */
export async function inWorld<T, O extends EngineProcessOptions, R extends WorldReader>(
  { createSubject, openWorld }: WorldParts<O, R>,
  body: (world: World<O, R>) => Promise<T>,
): Promise<T> {
  const engineWorld = await openWorld();
  const { clock, reader, takeoverMs } = engineWorld;
  const history = createHistory();
  const processes: ProcessControl[] = [];
  let closing: Promise<unknown> = Promise.resolve();
  let outside: Promise<unknown> = Promise.resolve();

  const settle = async () => {
    let made = -1;
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      await closing;
      await outside;
      await hostTurn();
      // A call that is answered at once is never in flight, so the number of calls is compared, too.
      const calls = processes.reduce((sum, control) => sum + control.calls('any'), 0);
      const isIdle = !engineWorld.isBusy?.() && processes.every(({ inFlight }) => inFlight === 0);
      quiet = made === calls && isIdle ? quiet + 1 : 0;
      made = calls;
    }
  };

  const open = async (options: ProcessOptions<O>): Promise<Process> => {
    await closing;
    const number = processes.length + 1;
    let end = async () => {};
    const control = controlProcess({
      clock,
      fault: options.fault,
      onCommit: (batch, results) => history.addCommit(number, batch, results),
      // Does what the operating system does after a process has died: closes what the process had open.
      onKill() {
        closing = closing.then(async () => {
          while (control.inFlight > 0) await hostTurn();
          await end();
        });
      },
    });
    const opened = await engineWorld.open(control, options.engine ?? ({} as O));
    end = async () => opened.end?.();
    processes.push(control);
    return createProcess({ createSubject, options, control, opened, history, number });
  };

  /** Advances time to the next timer. The world must be settled, and what the caller knows of it must be read since. */
  const step = async (maxMs: number): Promise<number> => {
    const next = clock.nextIn;
    if (next === undefined || next > maxMs) {
      await clock.advance(maxMs);
      await settle();
      return maxMs;
    }
    await clock.advanceToNext();
    await settle();
    return next;
  };

  const until: World<O, R>['until'] = async (what, holds, maxMs = MAX_MS) => {
    const end = clock.monotonic() + maxMs;
    await settle();
    // Nothing may happen between the look and the step: a process that dies there takes its timers along, and time would jump.
    while (!(await holds())) {
      const left = end - clock.monotonic();
      if (left <= 0) throw new Error(`${what}: not within ${maxMs} ms`);
      if (clock.nextIn === undefined) throw new Error(`${what}: no timer is left, so it can never happen`);
      await step(left);
    }
  };

  const world: World<O, R> = {
    clock,
    history,
    reader,
    takeoverMs,
    open,
    later(ms, work) {
      clock.setTimer(ms, () => {
        outside = outside.then(work);
      });
    },
    settle,
    async advance(ms) {
      await settle();
      for (let left = ms; left > 0; ) left -= await step(left);
    },
    until,
    async ended(id, maxMs) {
      let record: Execution | undefined;
      const look = async () => {
        record = await reader.executions.get(id);
        return record !== undefined && isFinal(record.status);
      };
      await until(`the end of ${id}`, look, maxMs);
      return record as Execution;
    },
  };
  try {
    const result = await body(world);
    history.check();
    return result;
  } finally {
    for (const control of processes) {
      control.kill();
      control.resume();
    }
    await settle();
    await engineWorld.close();
  }
}
