/** Does what is due at its time with one timer, which is set to the earliest instant at which a task has something to do. */

import type { AttachedEngine } from '../../engine/execution/execution-engine.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import type { SteadyClock } from './steady-clock.ts';

/** A schedule, or the sending of deliveries. */
export interface TimedTask {
  /** Its instants are those of the host's clock, as of a schedule. Else they are those of the steady clock. */
  readonly usesWall?: true;
  /** Does what is due. A task that fails is tried again later. */
  advance(options: AdvanceOptions): Promise<TaskProgress>;
  /** Logs that it failed. @param againInMs - after this time it is tried again */
  logFailure(err: unknown, againInMs: number): void;
}

export interface AdvanceOptions {
  /** Unix ms from which on this process was there without a break. */
  readonly aliveFrom: number;
  /** Whether the task also does what other processes may have begun. */
  readonly takesOver: boolean;
  /** Whether the task waits for what it begins, because the process may stop after the call. */
  readonly waits: boolean;
  shouldContinue(): boolean;
}

export interface TaskProgress {
  /** Unix ms at which it has something to do next. Undefined: never. */
  readonly nextAt: number | undefined;
  /** Unix ms at which it looks again at what other processes may have left. */
  readonly looksAt?: number;
  /** The execution for whose end it waits. */
  readonly waitsFor?: string;
}

export interface TimedWork {
  /**
   * Begins to do the tasks, if the process can set timers outside of a request. A second call does not begin again.
   * @param keepsAlive - whether the timer keeps the process alive
   * @returns a promise that resolves after each task was done once
   */
  begin(keepsAlive: boolean): Promise<unknown> | undefined;
  /** A task has something to do from an instant (Unix ms) on. */
  wake(task: TimedTask, at: number): void;
  /** Does what is due. @returns the instant (Unix ms) at which a task has something to do next */
  runDue(): Promise<number | undefined>;
  stop(): void;
}

export interface TimedDependencies {
  readonly storage: Pick<Storage, 'wakeAt' | 'capabilities'>;
  readonly clock: SteadyClock;
  readonly logger: Logger;
  readonly engine: Pick<AttachedEngine, 'whenEnded'>;
}

/** The clock is read at least this often: timers stop while a machine sleeps, and ignore changes of its clock. */
const MAX_TIMER_MS = 300_000;
/** A timer that fires this late belongs to a process that was stopped. What was due in the meantime was missed. */
const STANDSTILL_MS = 60_000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/** A task that this process does. */
interface Served {
  readonly task: TimedTask;
  /** Unix ms of the task's clock at which it is done next. Undefined: never. */
  nextAt: number | undefined;
  /** Unix ms of its next look, and what cancels its timer. */
  look: { readonly at: number; readonly cancel: () => void } | undefined;
  serving: Promise<void> | undefined;
  /** Whether it was called for again while it was done. */
  again: boolean;
  /** The execution for whose end it waits. */
  waitsFor: string | undefined;
  /** The wait before the next try, if it fails now. */
  pauseMs: number;
  /** Whether the last try failed. Then the next one takes over what the failed one left. */
  failed: boolean;
}

export function createTimedWork(tasks: readonly TimedTask[], dependencies: TimedDependencies): TimedWork {
  const { storage, logger, engine } = dependencies;
  const { wall: clock } = dependencies.clock;
  const idle = {
    look: undefined,
    serving: undefined,
    again: false,
    waitsFor: undefined,
    pauseMs: FIRST_PAUSE_MS,
    failed: false,
  };
  const served = tasks.map((task): Served => ({ task, nextAt: Number.NEGATIVE_INFINITY, ...idle }));

  let begun: Promise<unknown> | undefined;
  /** Whether the timer is used. */
  let usesTimer = false;
  let stopped = false;
  let keepsAlive = false;
  let aliveFrom = 0;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;
  /** Cancels the next look at the clock. */
  let cancelReading: (() => void) | undefined;

  const nowOf = ({ task }: Served) => (task.usesWall ? clock : dependencies.clock).now();
  const toWall = ({ task }: Served, at: number) => (task.usesWall ? at : dependencies.clock.toWall(at));

  const advance = async (one: Served, takesOver: boolean, waits: boolean): Promise<void> => {
    try {
      const shouldContinue = () => !stopped;
      const { nextAt, looksAt, waitsFor } = await one.task.advance({ aliveFrom, takesOver, waits, shouldContinue });
      one.nextAt = nextAt;
      if (looksAt !== undefined) lookAt(one, toWall(one, looksAt));
      one.pauseMs = FIRST_PAUSE_MS;
      one.failed = false;
      if (waitsFor !== undefined) awaitEnd(one, waitsFor);
    } catch (error) {
      if (stopped) return;
      one.failed = true;
      one.nextAt = nowOf(one) + one.pauseMs;
      one.task.logFailure(error, one.pauseMs);
      one.pauseMs = Math.min(one.pauseMs * 2, MAX_PAUSE_MS);
    }
  };

  /** Does a task. A call while it is done causes another pass after that. */
  const serve = (one: Served, takesOver: boolean, waits = false): Promise<void> => {
    one.again ||= one.serving !== undefined;
    one.serving ??= advance(one, takesOver || one.failed, waits).then(() => {
      one.serving = undefined;
      if (!one.again || stopped) return arm();
      one.again = false;
      return serve(one, true, waits);
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
    engine.whenEnded(id).then(onEnd, () => {
      one.waitsFor = undefined;
    });
  };

  /** By the host's clock. */
  const earliest = (): number | undefined => {
    let first: number | undefined;
    for (const one of served) {
      const at = one.serving || one.nextAt === undefined ? undefined : toWall(one, one.nextAt);
      if (at !== undefined && (first === undefined || at < first)) first = at;
    }
    return first;
  };

  const arm = () => {
    const next = earliest();
    if (stopped || !usesTimer || next === undefined) return;
    const now = clock.now();
    const at = Math.max(now, next);
    if (!storage.wakeAt) cancelReading ??= readClock(now);
    if (timer && timer.at <= at) return;
    timer?.cancel();
    timer = { at, cancel: setTimer(at, at - now) };
  };

  // An alarm of the host follows the wall clock by itself.
  const readClock = (now: number): (() => void) => {
    let at = now + MAX_TIMER_MS;
    const onHeldBack = (ms: number) => {
      at += ms;
    };
    const read = () => {
      cancelReading = undefined;
      serveDue(at);
    };
    return clock.setTimer(MAX_TIMER_MS, read, { background: !keepsAlive, sweep: true, onHeldBack });
  };

  const lookAt = (one: Served, at: number) => {
    one.look?.cancel();
    one.look = undefined;
    if (stopped || !usesTimer) return;
    const options = { background: !keepsAlive, sweep: true };
    one.look = { at, cancel: clock.setTimer(at - clock.now(), () => void serve(one, false), options) };
  };

  const setTimer = (at: number, leftMs: number): (() => void) => {
    if (!storage.wakeAt) return clock.setTimer(leftMs, () => onTimer(at), { background: !keepsAlive });
    const onFailure = (err: unknown) => logger.warn({ err }, 'the host could not be asked to wake this process');
    Promise.resolve(storage.wakeAt(at)).catch(onFailure);
    return () => undefined;
  };

  const onTimer = (expectedAt: number) => {
    timer = undefined;
    serveDue(expectedAt);
  };

  const serveDue = (expectedAt: number) => {
    const now = clock.now();
    if (now - expectedAt > STANDSTILL_MS) aliveFrom = now;
    for (const one of served)
      if (!one.serving && one.nextAt !== undefined && one.nextAt <= nowOf(one)) void serve(one, false);
    arm();
  };

  const cancelTimers = () => {
    timer?.cancel();
    cancelReading?.();
    timer = undefined;
    cancelReading = undefined;
  };

  const serveAll = (waits: boolean) => Promise.all(served.map((one) => serve(one, true, waits)));

  return {
    begin(forGood) {
      if (stopped || !storage.capabilities.timers) return undefined;
      if (forGood && !keepsAlive) {
        keepsAlive = true;
        cancelTimers();
        arm();
        for (const one of served) if (one.look) lookAt(one, one.look.at);
      }
      if (begun) return begun;
      usesTimer = true;
      aliveFrom = clock.now();
      begun = serveAll(false);
      return begun;
    },
    wake(task, at) {
      const one = served.find((other) => other.task === task);
      if (!one || stopped || !usesTimer) return;
      if (at <= nowOf(one)) void serve(one, false);
      else if (!one.serving && (one.nextAt === undefined || at < one.nextAt)) {
        one.nextAt = at;
        arm();
      }
    },
    async runDue() {
      // The host has woken this process, so the instant that it was asked for is over.
      if (storage.wakeAt) timer = undefined;
      // Without the timer, no process did the tasks between two calls.
      if (!usesTimer) aliveFrom = clock.now();
      await serveAll(true);
      return earliest();
    },
    stop() {
      stopped = true;
      cancelTimers();
      for (const one of served) one.look?.cancel();
    },
  };
}

/** Does due tasks, runs due executions, and then starts ticks that waited for the end of these executions, and sends what they notify of. */
export async function runAllDue(
  work: TimedWork,
  engine: Pick<AttachedEngine, 'runDue'>,
  limit: number,
  toWall: SteadyClock['toWall'],
): Promise<{ readonly nextDueAt?: number }> {
  const runDue = async (most: number) => {
    const { nextDueAt } = await engine.runDue(most);
    return nextDueAt === undefined ? {} : { nextDueAt: toWall(nextDueAt) };
  };
  const first = await work.runDue();
  const ran = await runDue(limit);
  const next = await work.runDue();
  if (first === undefined && next === undefined) return ran;
  const { nextDueAt = next } = await runDue(0);
  if (nextDueAt === undefined) return {};
  return { nextDueAt: next === undefined ? nextDueAt : Math.min(nextDueAt, next) };
}
