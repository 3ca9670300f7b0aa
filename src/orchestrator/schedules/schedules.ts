/** Serves the schedules of an orchestrator with one timer, which is set to the earliest instant at which a schedule is due. */

import { createScheduleDriver, type QueuedStart, type ScheduleDriver } from './drive-schedule.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { AttachedEngine } from '../../engine/ports/execution-engine.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { newExecution } from '../runs/new-execution.ts';
import { readInput } from '../runs/read-input.ts';
import type { ExecutionService } from '../runs/execution-service.ts';

export interface Schedules {
  /**
   * Begins to serve the schedules, if the process can set timers outside of a request. A second call does not begin again.
   * @param keepsAlive - whether the timer keeps the process alive
   * @returns a promise that resolves after each schedule was served once
   */
  begin(keepsAlive: boolean): Promise<unknown> | undefined;
  /** Starts what is due. @returns the instant (Unix ms) at which a schedule is due next */
  runDue(): Promise<number | undefined>;
  stop(): void;
}

export interface SchedulesParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly executionService: Pick<ExecutionService, 'toLoadedDefinition' | 'engine' | 'records'>;
}

/** The clock is read at least this often: timers stop while a machine sleeps, and ignore changes of its clock. */
const MAX_TIMER_MS = 300_000;
/** A timer that fires this late belongs to a process that was stopped. Ticks that were due in the meantime were missed. */
const STANDSTILL_MS = 60_000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/** A schedule that this process serves. */
interface Served {
  readonly name: string;
  readonly driver: ScheduleDriver;
  /** Unix ms at which it is served next. Undefined: never. */
  nextAt: number | undefined;
  serving: Promise<void> | undefined;
  /** Whether it was called for again while it was served. */
  again: boolean;
  /** The execution for whose end it waits. */
  waitsFor: string | undefined;
  /** The wait before the next try, if it fails now. */
  pauseMs: number;
  /** Whether the last try failed. Then the next one starts what the failed one left. */
  failed: boolean;
}

/** @returns undefined when no ensemble has a schedule */
export function createSchedules(ensembles: Iterable<LoadedEnsemble>, parts: SchedulesParts): Schedules | undefined {
  const { storage, clock, logger, executionService } = parts;
  const start = async (ensemble: LoadedEnsemble, { id, seed, trigger, input: given }: QueuedStart) => {
    const input = await readInput(ensemble, given);
    // The timeout counts from the start of the execution, not from the tick.
    const execution = newExecution(ensemble.compiled, { id, seed, trigger, input, createdAt: clock.now() });
    await executionService.engine.begin(execution, executionService.toLoadedDefinition(ensemble), {
      mayQueue: true,
      repeatable: true,
    });
  };
  const served: Served[] = [];
  for (const ensemble of ensembles) {
    for (const schedule of ensemble.compiled.schedules) {
      const driver = createScheduleDriver({
        schedules: storage.schedules,
        records: executionService.records,
        clock,
        logger,
        ensemble,
        schedule,
        start,
      });
      const idle = { serving: undefined, again: false, waitsFor: undefined, pauseMs: FIRST_PAUSE_MS, failed: false };
      served.push({ name: schedule.name, driver, nextAt: Number.NEGATIVE_INFINITY, ...idle });
    }
  }
  if (served.length === 0) return undefined;

  let begun: Promise<unknown> | undefined;
  /** Whether the timer is used. */
  let usesTimer = false;
  let stopped = false;
  let keepsAlive = false;
  let aliveFrom = 0;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;

  const advance = async (one: Served, takesOver: boolean): Promise<void> => {
    try {
      const { nextAt, waitsFor } = await one.driver.advance({ aliveFrom, takesOver, shouldContinue: () => !stopped });
      one.nextAt = nextAt;
      one.pauseMs = FIRST_PAUSE_MS;
      one.failed = false;
      if (waitsFor !== undefined) awaitEnd(one, waitsFor);
    } catch (error) {
      if (stopped) return;
      one.failed = true;
      one.nextAt = clock.now() + one.pauseMs;
      const about = { err: error, schedule: one.name, againInMs: one.pauseMs };
      logger.warn(about, 'a schedule could not be served; it is tried again, and no tick is lost');
      one.pauseMs = Math.min(one.pauseMs * 2, MAX_PAUSE_MS);
    }
  };

  /** Serves a schedule. A call while it is served causes another pass after that. */
  const serve = (one: Served, takesOver: boolean): Promise<void> => {
    one.again ||= one.serving !== undefined;
    one.serving ??= advance(one, takesOver || one.failed).then(() => {
      one.serving = undefined;
      if (!one.again || stopped) return arm();
      one.again = false;
      return serve(one, true);
    });
    return one.serving;
  };

  const awaitEnd = (one: Served, id: string) => {
    if (!usesTimer || one.waitsFor === id) return;
    one.waitsFor = id;
    const onEnd = () => {
      if (one.waitsFor === id) one.waitsFor = undefined;
      if (!stopped) void serve(one, true);
    };
    // If this wait fails, the next pass sees the end.
    executionService.engine.whenEnded(id).then(onEnd, () => {
      one.waitsFor = undefined;
    });
  };

  const earliest = (): number | undefined => {
    let first: number | undefined;
    for (const { serving, nextAt } of served) {
      if (!serving && nextAt !== undefined && (first === undefined || nextAt < first)) first = nextAt;
    }
    return first;
  };

  const arm = () => {
    const next = earliest();
    if (stopped || !usesTimer || next === undefined) return;
    const now = clock.now();
    // An alarm of the host follows the wall clock by itself.
    const latest = storage.wakeAt ? next : now + MAX_TIMER_MS;
    const at = Math.max(now, Math.min(next, latest));
    if (timer && timer.at <= at) return;
    timer?.cancel();
    timer = { at, cancel: setTimer(at, at - now) };
  };

  const setTimer = (at: number, leftMs: number): (() => void) => {
    if (!storage.wakeAt) return clock.setTimer(leftMs, () => wake(at), { background: !keepsAlive });
    const onFailure = (err: unknown) => logger.warn({ err }, 'the host could not be asked to wake this process');
    Promise.resolve(storage.wakeAt(at)).catch(onFailure);
    return () => undefined;
  };

  const wake = (expectedAt: number) => {
    timer = undefined;
    const now = clock.now();
    if (now - expectedAt > STANDSTILL_MS) aliveFrom = now;
    for (const one of served) if (!one.serving && one.nextAt !== undefined && one.nextAt <= now) void serve(one, false);
    arm();
  };

  const serveAll = (takesOver: boolean) => Promise.all(served.map((one) => serve(one, takesOver)));

  return {
    begin(forGood) {
      if (stopped || !storage.capabilities.timers) return undefined;
      if (forGood && !keepsAlive) {
        keepsAlive = true;
        timer?.cancel();
        timer = undefined;
        arm();
      }
      if (begun) return begun;
      usesTimer = true;
      aliveFrom = clock.now();
      begun = serveAll(true);
      return begun;
    },
    async runDue() {
      // The host has woken this process, so the instant that it was asked for is over.
      if (storage.wakeAt) timer = undefined;
      // Without the timer, no process served the schedules between two calls.
      if (!usesTimer) aliveFrom = clock.now();
      await serveAll(true);
      return earliest();
    },
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}

/** Starts due schedules, runs due executions, and then starts ticks that waited for the end of these executions. */
export async function runAllDue(
  schedules: Schedules,
  engine: Pick<AttachedEngine, 'runDue'>,
  limit: number,
): Promise<{ readonly nextDueAt?: number }> {
  await schedules.runDue();
  await engine.runDue(limit);
  const tick = await schedules.runDue();
  const { nextDueAt = tick } = await engine.runDue(0);
  if (nextDueAt === undefined) return {};
  return { nextDueAt: tick === undefined ? nextDueAt : Math.min(nextDueAt, tick) };
}
