/** Serves the schedules of an orchestrator: one timer, set to the earliest instant at which one of them is due. */

import { createScheduleDriver, type QueuedStart, type ScheduleDriver } from './drive-schedule.ts';
import { acceptInput } from './engine/definition/accept-input.ts';
import type { Clock } from './engine/ports/clock.ts';
import type { RunningEngine } from './engine/ports/execution-engine.ts';
import type { Logger } from './engine/ports/logger.ts';
import type { Storage } from './engine/ports/storage.ts';
import type { LoadedEnsemble } from './load-definitions.ts';
import { newExecution } from './new-execution.ts';
import type { Runner } from './runner.ts';

export interface Schedules {
  /**
   * Begins to serve, where a process can set timers outside of a request; does nothing more when it does.
   * @param keepsAlive - the process stays alive for what is due next
   * @returns when each schedule was looked at
   */
  begin(keepsAlive: boolean): Promise<unknown> | undefined;
  /** Does what is due. @returns the instant (Unix ms) at which something is due next */
  runDue(): Promise<number | undefined>;
  stop(): void;
}

export interface SchedulesParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly runner: Pick<Runner, 'runnable' | 'engine'>;
}

/** The clock is looked at so often: timers stand still while a machine sleeps, and don't know when its clock is set. */
const LONGEST_TIMER_MS = 300_000;
/** A timer that fires so late fires in a process that stood still: what was due meanwhile was missed. */
const STOOD_STILL_MS = 60_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/** One schedule at work. */
interface Served {
  readonly name: string;
  readonly driver: ScheduleDriver;
  /** When it is looked at next; undefined for never. */
  nextAt: number | undefined;
  looking: Promise<void> | undefined;
  /** Something came up while it was looked at. */
  again: boolean;
  /** The run whose end is listened for. */
  waitsFor: string | undefined;
  /** Until it is tried again, if it fails now. */
  pauseMs: number;
  /** It failed: what it left undone is its own. */
  failed: boolean;
}

/** @returns undefined when no ensemble has a schedule */
export function createSchedules(ensembles: Iterable<LoadedEnsemble>, parts: SchedulesParts): Schedules | undefined {
  const { storage, clock, logger, runner } = parts;
  const start = async (ensemble: LoadedEnsemble, { id, seed, trigger, input: given }: QueuedStart) => {
    const input = acceptInput(ensemble.compiled, given);
    // A run that starts late has all of its time.
    const execution = newExecution(ensemble.compiled, { id, seed, trigger, input, createdAt: clock.now() });
    await runner.engine.begin(execution, runner.runnable(ensemble), { mayQueue: true, repeatable: true });
  };
  const served: Served[] = [];
  for (const ensemble of ensembles) {
    for (const schedule of ensemble.compiled.schedules) {
      const driver = createScheduleDriver({ storage, clock, logger, ensemble, schedule, start });
      const idle = { looking: undefined, again: false, waitsFor: undefined, pauseMs: FIRST_PAUSE_MS, failed: false };
      served.push({ name: schedule.name, driver, nextAt: Number.NEGATIVE_INFINITY, ...idle });
    }
  }
  if (served.length === 0) return undefined;

  let begun: Promise<unknown> | undefined;
  /** The timer is set. */
  let serving = false;
  let stopped = false;
  let keepsAlive = false;
  let aliveFrom = 0;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;

  const look = async (one: Served, takesOver: boolean): Promise<void> => {
    try {
      const { nextAt, waitsFor } = await one.driver.look({ aliveFrom, takesOver, goesOn: () => !stopped });
      one.nextAt = nextAt;
      one.pauseMs = FIRST_PAUSE_MS;
      one.failed = false;
      if (waitsFor !== undefined) listen(one, waitsFor);
    } catch (error) {
      if (stopped) return;
      one.failed = true;
      one.nextAt = clock.now() + one.pauseMs;
      const about = { err: error, schedule: one.name, againInMs: one.pauseMs };
      logger.warn(about, 'a schedule could not be served; it is tried again, and nothing of it is lost');
      one.pauseMs = Math.min(one.pauseMs * 2, LONGEST_PAUSE_MS);
    }
  };

  /** One look at a time: what comes up meanwhile is seen by another one behind it. */
  const lookAt = (one: Served, takesOver: boolean): Promise<void> => {
    one.again ||= one.looking !== undefined;
    one.looking ??= look(one, takesOver || one.failed).then(() => {
      one.looking = undefined;
      if (!one.again || stopped) return arm();
      one.again = false;
      return lookAt(one, true);
    });
    return one.looking;
  };

  const listen = (one: Served, id: string) => {
    if (!serving || one.waitsFor === id) return;
    one.waitsFor = id;
    const heard = () => {
      if (one.waitsFor === id) one.waitsFor = undefined;
      if (!stopped) void lookAt(one, true);
    };
    // When it can't be listened for, the next look sees it.
    runner.engine.whenEnded(id).then(heard, () => {
      one.waitsFor = undefined;
    });
  };

  const earliest = (): number | undefined => {
    let first: number | undefined;
    for (const { looking, nextAt } of served) {
      if (!looking && nextAt !== undefined && (first === undefined || nextAt < first)) first = nextAt;
    }
    return first;
  };

  const arm = () => {
    const next = earliest();
    if (stopped || !serving || next === undefined) return;
    const now = clock.now();
    const at = Math.min(Math.max(next, now), now + LONGEST_TIMER_MS);
    if (timer && timer.at <= at) return;
    timer?.cancel();
    timer = { at, cancel: clock.setTimer(at - now, () => wake(at), { background: !keepsAlive }) };
  };

  const wake = (expectedAt: number) => {
    timer = undefined;
    const now = clock.now();
    if (now - expectedAt > STOOD_STILL_MS) aliveFrom = now;
    for (const one of served)
      if (!one.looking && one.nextAt !== undefined && one.nextAt <= now) void lookAt(one, false);
    arm();
  };

  const lookAtAll = (takesOver: boolean) => Promise.all(served.map((one) => lookAt(one, takesOver)));

  return {
    begin(forGood) {
      if (stopped || !storage.capabilities.sharedCommits) return undefined;
      if (forGood && !keepsAlive) {
        keepsAlive = true;
        timer?.cancel();
        timer = undefined;
        arm();
      }
      if (begun) return begun;
      serving = true;
      aliveFrom = clock.now();
      begun = lookAtAll(true);
      return begun;
    },
    async runDue() {
      // Nobody was there between two calls, unless the timer was.
      if (!serving) aliveFrom = clock.now();
      await lookAtAll(true);
      return earliest();
    },
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}

/** Starts what schedules ask for, does what is due, and starts what waited for the end of that. */
export async function runAllDue(
  schedules: Schedules,
  engine: Pick<RunningEngine, 'runDue'>,
  limit: number,
): Promise<{ readonly nextDueAt?: number }> {
  await schedules.runDue();
  await engine.runDue(limit);
  const tick = await schedules.runDue();
  const { nextDueAt = tick } = await engine.runDue(0);
  if (nextDueAt === undefined) return {};
  return { nextDueAt: tick === undefined ? nextDueAt : Math.min(nextDueAt, tick) };
}
