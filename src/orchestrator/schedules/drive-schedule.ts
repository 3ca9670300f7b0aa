/**
 * Serves one schedule, possibly together with other processes: reads its progress, adds the due ticks, and starts them.
 *
 * A due tick is stored as waiting before its execution starts, and removed after that. The id of the execution is derived from the
 * schedule and the tick, so a second start of a tick has no effect. Therefore a crash at any point neither loses nor doubles a tick.
 */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { CompiledSchedule } from '../../engine/compiled/compiled-ensemble.ts';
import type { ExecutionTrigger } from '../../engine/execution/execution.ts';
import { derivedId } from '../../engine/execution/id.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import {
  type AddedTicks,
  addDueTicks,
  firstProgress,
  readProgress,
  type ScheduleProgress,
  takeTick,
  toStored,
} from '../../engine/schedule/schedule.ts';
import type { RecordReader, ScheduleStore } from '../../engine/storage/storage.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { AdvanceOptions, TaskProgress } from '../timed/timed-work.ts';

/** With `takesOver`, ticks that another process added and has not started are started at once, instead of after a wait. */
type Advance = Omit<AdvanceOptions, 'waits'>;

/** A start whose id and seed are derived from the schedule and the tick. */
export interface QueuedStart {
  readonly id: string;
  readonly seed: string;
  readonly trigger: ExecutionTrigger;
  readonly input: unknown;
}

export interface ScheduleDependencies {
  readonly schedules: ScheduleStore;
  readonly records: RecordReader;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ensemble: LoadedEnsemble;
  readonly schedule: CompiledSchedule;
  /** Stores a start. The same start counts once. */
  start(ensemble: LoadedEnsemble, start: QueuedStart): Promise<void>;
}

export interface ScheduleDriver {
  /**
   * Adds and starts the ticks that are due.
   * @returns when to call it again (Unix ms, undefined for never), and the execution for whose end a tick waits
   * @throws errors of the storage and of a start. Then no tick is lost, and the next call continues
   */
  advance(options: Advance): Promise<TaskProgress>;
}

/** After this time, any process starts the ticks that another process added and has not started. */
const TAKEOVER_MS = 5_000;
/** How often the end of an execution is checked. It is only a fallback: the engine also reports the end. */
const FALLBACK_MS = 60_000;

/** The progress and its version in the storage. */
interface Known {
  readonly progress: ScheduleProgress;
  readonly version: number;
}

export function createScheduleDriver(dependencies: ScheduleDependencies): ScheduleDriver {
  const { schedules, records, clock, schedule } = dependencies;
  const { name, ticks, overlap, catchUp } = schedule;
  const log = createLog(dependencies);
  /** The version that an earlier call found, and since when it is unchanged. A process that works on the schedule changes it. */
  let unchanged: { readonly version: number; readonly since: number } | undefined;
  /** The tick that this process started last, so that it does not start the tick twice. */
  let startedHere: number | undefined;
  /** The last tick whose execution is known to have ended. */
  let endedTick: number | undefined;

  const read = async (): Promise<Known | undefined> => {
    const stored = await schedules.read(name);
    return stored && { progress: readProgress(stored.value, name), version: stored.version };
  };

  /** @returns undefined if another process was faster */
  const write = async (expectedVersion: number, progress: ScheduleProgress): Promise<Known | undefined> => {
    const change = { expectedVersion, value: toStored(progress), updatedAt: clock.now() };
    return (await schedules.advance(name, change)) ? { progress, version: expectedVersion + 1 } : undefined;
  };

  const isBusy = async ({ started }: ScheduleProgress): Promise<boolean> => {
    if (started === undefined || started === endedTick) return false;
    const ended = await records.executions.findEnded([startOf(name, started).id]);
    if (ended.length > 0) endedTick = started;
    return ended.length === 0;
  };

  const start = async (tick: number) => {
    if (startedHere === tick) return;
    const { cron, timezone, input } = schedule;
    const trigger = Object.freeze({ type: 'schedule', cron, timezone, scheduledAt: tick } as const);
    await dependencies.start(dependencies.ensemble, { ...startOf(name, tick), trigger, input });
    startedHere = tick;
  };

  /** Adds due ticks. @returns undefined if another process was faster, the same progress if nothing is due */
  const addDue = async (known: Known, { aliveFrom, shouldContinue }: Advance): Promise<Known | undefined> => {
    const now = clock.now();
    const next = ticks.next(known.progress.seen);
    if (next === undefined || next > now) return known;
    const busy = overlap === 'skip' && (await isBusy(known.progress));
    const added = addDueTicks(known.progress, ticks, { now, aliveFrom, overlap, catchUp, busy });
    if (!added || !shouldContinue()) return known;
    const written = await write(known.version, added.progress);
    if (written) log(added);
    return written;
  };

  /** Starts ticks that wait, one by one, until one of them runs. @returns undefined if another process was faster */
  const startWaiting = async (
    known: Known,
    { shouldContinue }: Advance,
  ): Promise<{ readonly known: Known; readonly busy: boolean } | undefined> => {
    let at: Known | undefined = known;
    while (at && at.progress.waiting.length > 0) {
      if (await isBusy(at.progress)) return { known: at, busy: true };
      const { tick, progress } = takeTick(at.progress, ticks);
      if (tick !== undefined && shouldContinue()) await start(tick);
      at = shouldContinue() ? await write(at.version, progress) : undefined;
    }
    return at && { known: at, busy: false };
  };

  const nextAt = ({ progress, version }: Known, now: number, waitMs = TAKEOVER_MS): number | undefined => {
    const next = ticks.next(progress.seen);
    if (progress.waiting.length === 0) return next;
    if (unchanged?.version !== version) unchanged = { version, since: now };
    return Math.min(next ?? Number.POSITIVE_INFINITY, now + waitMs);
  };

  return {
    async advance(options) {
      for (let takesOver = options.takesOver; options.shouldContinue(); takesOver = false) {
        const found = await read();
        const now = clock.now();
        const known = found ?? (await write(0, firstProgress(now)));
        // Another process may resume it before the next tick.
        if (known?.progress.paused) return { nextAt: ticks.next(now) };
        const current = known && (await addDue(known, options));
        // Another process was faster: it starts the ticks, unless the progress is unchanged after a while.
        if (!current) continue;
        const isOwn = takesOver || current !== known;
        const isLeft = unchanged?.version === current.version && now - unchanged.since >= TAKEOVER_MS;
        if (!isOwn && !isLeft) return { nextAt: nextAt(current, now) };
        const done = await startWaiting(current, options);
        if (!done) continue;
        const { started } = done.known.progress;
        if (!done.busy || !isOwn || started === undefined) return { nextAt: nextAt(done.known, now) };
        return { nextAt: nextAt(done.known, now, FALLBACK_MS), waitsFor: startOf(name, started).id };
      }
      return { nextAt: undefined };
    },
  };
}

/** Logs ticks that were missed or dropped. */
function createLog({ logger, ensemble, schedule }: ScheduleDependencies): (added: AddedTicks) => void {
  const about = { ensemble: ensemble.compiled.name, cron: schedule.cron };
  return ({ missed, overlapped }) => {
    if (overlapped)
      logger.warn(about, 'a schedule was due while its last execution had not ended; the tick is dropped');
    else if (missed?.waits) {
      const message = 'a schedule was due while no process ran; it starts once for all missed ticks';
      logger.info({ ...about, scheduledAt: missed.last }, message);
    } else if (missed) {
      const message = 'a schedule was due while no process ran; the missed ticks are dropped';
      logger.warn({ ...about, scheduledAt: missed.last }, message);
    }
  };
}

/** The id and the seed of the execution that a tick of a schedule starts. They are equal in every process. */
export function startOf(schedule: string, tick: number): { readonly id: string; readonly seed: string } {
  const hash = sha256(utf8ToBytes(`${schedule}\n${tick}`));
  return { id: derivedId('exec_', tick, hash.subarray(16)), seed: bytesToHex(hash.subarray(0, 16)) };
}
