/**
 * Serves one schedule, beside other processes that do the same: looks how far it has come, takes in what is due, starts it.
 *
 * What is due is stored as waiting before it is started, and taken off behind that. The id of a run is made of its schedule
 * and its tick, so whoever starts a tick that was started before starts nothing: a crash anywhere between loses and doubles
 * nothing.
 */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { CompiledSchedule } from './engine/definition/compiled-ensemble.ts';
import type { ExecutionTrigger } from './engine/model/execution.ts';
import { derivedId } from './engine/model/id.ts';
import {
  firstProgress,
  type Noted,
  noteTicks,
  readProgress,
  type ScheduleProgress,
  takeTick,
  toStored,
} from './engine/model/schedule.ts';
import type { Clock } from './engine/ports/clock.ts';
import type { Logger } from './engine/ports/logger.ts';
import type { Storage } from './engine/ports/storage.ts';
import type { LoadedEnsemble } from './load-definitions.ts';

/** A run whose id and seed are no chance. */
export interface QueuedStart {
  readonly id: string;
  readonly seed: string;
  readonly trigger: ExecutionTrigger;
  readonly input: unknown;
}

export interface ScheduleParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ensemble: LoadedEnsemble;
  readonly schedule: CompiledSchedule;
  /** Stores a start; the same one again counts once. */
  start(ensemble: LoadedEnsemble, start: QueuedStart): Promise<void>;
}

export interface LookOptions {
  /** Somebody was there from this instant on. */
  readonly aliveFrom: number;
  /** What another process took in and has not started is started at once, instead of a while later. */
  readonly takesOver: boolean;
  /** Whether to go on: asked between the steps of a look. */
  goesOn(): boolean;
}

export interface ScheduleDriver {
  /**
   * Does what is to be done now.
   * @returns when to look again (Unix ms; undefined for never), and the run whose end something waits for
   * @throws what the storage and a start throw; then nothing is lost, and the next look goes on
   */
  look(options: LookOptions): Promise<{ readonly nextAt: number | undefined; readonly waitsFor?: string }>;
}

/** After so long, what another process took in and has not started is started by whoever looks. */
const TAKEOVER_MS = 5_000;
/** How often it is looked whether a run is over whose end should be heard of by other ways. */
const AWAITED_MS = 60_000;

/** The progress and its version in the store. */
interface Known {
  readonly progress: ScheduleProgress;
  readonly version: number;
}

export function createScheduleDriver(parts: ScheduleParts): ScheduleDriver {
  const { storage, clock, schedule } = parts;
  const { name, ticks, overlap, catchUp } = schedule;
  const tell = createTeller(parts);
  /** What stood there at an earlier look, and since when: whoever is at work on it moves it on. */
  let unchanged: { readonly version: number; readonly since: number } | undefined;
  /** The tick that was last started here, whatever the store says: no start is made twice without need. */
  let startedHere: number | undefined;
  /** The last tick whose run is known to be over. */
  let overTick: number | undefined;

  const read = async (): Promise<Known | undefined> => {
    const stored = await storage.readSchedule(name);
    return stored && { progress: readProgress(stored.value, name), version: stored.version };
  };

  /** @returns undefined when another process was faster */
  const write = async (expectedVersion: number, progress: ScheduleProgress): Promise<Known | undefined> => {
    const change = { expectedVersion, value: toStored(progress), updatedAt: clock.now() };
    return (await storage.advanceSchedule(name, change)) ? { progress, version: expectedVersion + 1 } : undefined;
  };

  const isBusy = async ({ started }: ScheduleProgress): Promise<boolean> => {
    if (started === undefined || started === overTick) return false;
    const over = await storage.findEnded([startOf(name, started).id]);
    if (over.length > 0) overTick = started;
    return over.length === 0;
  };

  const start = async (tick: number) => {
    if (startedHere === tick) return;
    const { cron, timezone, input } = schedule;
    const trigger = Object.freeze({ type: 'schedule', cron, timezone, scheduledAt: tick } as const);
    await parts.start(parts.ensemble, { ...startOf(name, tick), trigger, input });
    startedHere = tick;
  };

  /** Takes in what is due. @returns undefined when another process was faster; the same when nothing is due */
  const note = async (known: Known, { aliveFrom, goesOn }: LookOptions): Promise<Known | undefined> => {
    const now = clock.now();
    const next = ticks.next(known.progress.seen);
    if (next === undefined || next > now) return known;
    const busy = overlap === 'skip' && (await isBusy(known.progress));
    const noted = noteTicks(known.progress, ticks, { now, aliveFrom, overlap, catchUp, busy });
    if (!noted || !goesOn()) return known;
    const written = await write(known.version, noted.progress);
    if (written) tell(noted);
    return written;
  };

  /** Starts what waits, one by one, until something runs. @returns undefined when another process was faster */
  const startWaiting = async (
    known: Known,
    { goesOn }: LookOptions,
  ): Promise<{ readonly known: Known; readonly busy: boolean } | undefined> => {
    let at: Known | undefined = known;
    while (at && at.progress.waiting.length > 0) {
      if (await isBusy(at.progress)) return { known: at, busy: true };
      const { tick, progress } = takeTick(at.progress, ticks);
      if (tick !== undefined && goesOn()) await start(tick);
      at = goesOn() ? await write(at.version, progress) : undefined;
    }
    return at && { known: at, busy: false };
  };

  const nextLook = ({ progress, version }: Known, now: number, waitMs = TAKEOVER_MS): number | undefined => {
    const next = ticks.next(progress.seen);
    if (progress.waiting.length === 0) return next;
    if (unchanged?.version !== version) unchanged = { version, since: now };
    return Math.min(next ?? Number.POSITIVE_INFINITY, now + waitMs);
  };

  return {
    async look(options) {
      for (let takesOver = options.takesOver; options.goesOn(); takesOver = false) {
        const found = await read();
        const now = clock.now();
        const known = found ?? (await write(0, firstProgress(now)));
        const noted = known && (await note(known, options));
        // Another process was faster: what there is to do is done by it, unless it says otherwise a while later.
        if (!noted) continue;
        const isOwn = takesOver || noted !== known;
        const isLeft = unchanged?.version === noted.version && now - unchanged.since >= TAKEOVER_MS;
        if (!isOwn && !isLeft) return { nextAt: nextLook(noted, now) };
        const done = await startWaiting(noted, options);
        if (!done) continue;
        const { started } = done.known.progress;
        if (!done.busy || !isOwn || started === undefined) return { nextAt: nextLook(done.known, now) };
        return { nextAt: nextLook(done.known, now, AWAITED_MS), waitsFor: startOf(name, started).id };
      }
      return { nextAt: undefined };
    },
  };
}

/** Tells the log of runs that are left out. */
function createTeller({ logger, ensemble, schedule }: ScheduleParts): (noted: Noted) => void {
  const about = { ensemble: ensemble.compiled.name, cron: schedule.cron };
  return ({ missed, overlapped }) => {
    if (overlapped) logger.warn(about, 'a schedule was due while its last run is not over; its run is left out');
    else if (missed?.waits) {
      const message = 'a schedule was due while no process ran; it runs once for all of that time';
      logger.info({ ...about, scheduledAt: missed.last }, message);
    } else if (missed) {
      const message = 'a schedule was due while no process ran; its runs of that time are left out';
      logger.warn({ ...about, scheduledAt: missed.last }, message);
    }
  };
}

/** Id and seed of the run that a tick of a schedule starts, whoever starts it. */
export function startOf(schedule: string, tick: number): { readonly id: string; readonly seed: string } {
  const hash = sha256(utf8ToBytes(`${schedule}\n${tick}`));
  return { id: derivedId('exec_', tick, hash.subarray(16)), seed: bytesToHex(hash.subarray(0, 16)) };
}
