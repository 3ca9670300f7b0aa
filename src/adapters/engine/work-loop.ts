/**
 * The engine's own beat: claims what is due as far as there is room, hears of cancels, and deletes what is old. One timer, set
 * to the next thing that is due; where other processes share the storage, a beat beside it, and looks at who of them is dead.
 */

import { messageOf, OrchestratorError } from '../../engine/errors.ts';
import { type ClaimedExecution, type DamagedExecution, NEVER } from '../../engine/model/stored-execution.ts';
import { nextTurn } from '../../engine/next-turn.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import { createPurge } from './purge.ts';
import { createRecovery } from './recovery.ts';

export interface WorkLoop {
  /** Begins the beat. */
  start(): void;
  /** Something is due at an instant; now, without one. */
  wake(dueAt?: number): void;
  /** A run gave its place back. */
  freed(): void;
  /**
   * Does what is due, claiming at most `limit`, and looks at the other owners if that is due.
   * @returns the next instant at which something is due
   */
  turn(limit: number): Promise<number | undefined>;
  stop(): Promise<void>;
}

export interface WorkLoopParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sweepMs: number;
  /** How long executions are kept once they have ended. */
  readonly retentionMs: number;
  readonly foreign: ReadonlySet<string>;
  /** The owner under which it claims; undefined while there is none. Rejoins after a loss. */
  owner(): Promise<string | undefined>;
  /** Whether nobody else can have taken over from this owner by now. */
  isSure(owner: string): boolean;
  /** Asks the storage whether an owner that is not sure is still known. */
  doubt(): Promise<void>;
  /** From when on what a dead process had claimed may be what it died of (Unix ms). */
  blameFrom(): number;
  /** How many more runs there is room for. */
  room(): number;
  /** Never rejects. @param reached - the instant up to which it was due */
  take(owner: string, claimed: ClaimedExecution | DamagedExecution, reached: number): Promise<void>;
  /** Gives back what the storage says that this owner holds, and is not at work here. */
  giveBackUnknown(owner: string): Promise<void>;
  cancel(id: string): void;
  /** So many signals have come for an execution by now. */
  hear(id: string, signals: number): void;
  /** Looks for ends that other processes brought about. */
  lookForEnds(): Promise<void>;
}

/** Claimed in one go. */
const MOST_CLAIMED = 500;
/** Looks for dead owners in each sweep: what they held is to go on within two seconds, most of which the storage may need. */
const LOOKS = 2;

export function createWorkLoop(parts: WorkLoopParts): WorkLoop {
  const { storage, clock, logger, sweepMs } = parts;
  const { shared, sharedCommits } = storage.capabilities;
  const beatMs = sweepMs / LOOKS;
  const purge = createPurge({ storage, clock, logger, retentionMs: parts.retentionMs, owner: parts.owner });
  const recovery = createRecovery({
    ...{ storage, clock, logger, beatMs, owner: parts.owner, blameFrom: parts.blameFrom },
    onFreed: () => soon(),
  });
  let started = false;
  let stopped = false;
  let turning: Promise<number | undefined> | undefined;
  /** Something came up while a turn was made. */
  let again = false;
  /** There was more to claim than there was room for. */
  let more = false;
  let scheduled = false;
  let timer: { readonly at: number; readonly cancel: () => void } | undefined;
  let beats = 0;
  let cancelBeat: (() => void) | undefined;
  let unwatch: (() => unknown) | undefined;
  /** A claim failed, and may have given executions that this process does not know of. */
  let claimInDoubt = false;
  /** What the storage says when it is asked for what is due: told once. */
  let failing: string | undefined;
  /** The instant of the timer that fired. */
  let firedFor = Number.NEGATIVE_INFINITY;

  const wakeAt = (at: number) => {
    if (stopped || !started || at >= NEVER || (timer && timer.at <= at)) return;
    const left = at - clock.now();
    if (left <= 0) {
      soon();
      return;
    }
    timer?.cancel();
    const cancel = clock.setTimer(left, () => {
      timer = undefined;
      // Wall time that was set back meanwhile delays nothing that was waited for.
      firedFor = Math.max(firedFor, at);
      now();
    });
    timer = { at, cancel };
  };

  const now = () => {
    if (turning) again = true;
    else void keepTurning();
  };

  const soon = () => {
    if (stopped || !started || scheduled) return;
    scheduled = true;
    nextTurn(() => {
      scheduled = false;
      now();
    });
  };

  const disarm = () => {
    timer?.cancel();
    timer = undefined;
  };

  const keepTurning = async () => {
    try {
      do {
        again = false;
        const next = await turn(() => makeTurn(Number.POSITIVE_INFINITY));
        firedFor = Number.NEGATIVE_INFINITY;
        failing = undefined;
        if (next === undefined) disarm();
        else if (!(more && parts.room() <= 0)) wakeAt(next);
      } while (again && !stopped);
    } catch (error) {
      if (messageOf(error) !== failing)
        logger.warn({ err: error }, 'the storage could not be asked for what is due; it is asked again');
      failing = messageOf(error);
      wakeAt(clock.now() + Math.max(sweepMs, 100));
    }
  };

  const turn = (make: () => Promise<number | undefined>): Promise<number | undefined> => {
    const made = (turning ?? Promise.resolve(undefined)).catch(() => undefined).then(make);
    turning = made;
    const done = () => {
      if (turning === made) turning = undefined;
    };
    made.then(done, done);
    return made;
  };

  /** @param andThen - done behind the claim: what is queued does not wait for it */
  const makeTurn = async (limit: number, andThen?: () => Promise<void>): Promise<number | undefined> => {
    const owner = await parts.owner();
    if (owner === undefined) {
      await parts.lookForEnds();
      return undefined;
    }
    if (claimInDoubt) {
      await parts.giveBackUnknown(owner);
      claimInDoubt = false;
    }
    more = false;
    for (let left = limit; left > 0 && !stopped; ) {
      const asked = Math.min(left, parts.room(), MOST_CLAIMED);
      if (asked <= 0) {
        more = true;
        break;
      }
      const due = Math.max(clock.now(), firedFor);
      // Until it has answered, it is not known what it gave.
      claimInDoubt = true;
      const claimed = await storage.claim(owner, { now: due, limit: asked, except: [...parts.foreign] });
      // Who stood still meanwhile may have been given what is another's by now.
      if (claimed.length > 0 && !parts.isSure(owner) && !(await isStillKnown(owner))) return undefined;
      claimInDoubt = false;
      left -= claimed.length;
      for (const one of claimed) void parts.take(owner, one, due);
      if (claimed.length < asked) break;
    }
    await andThen?.();
    const { nextDueAt = NEVER, cancelRequested, signalled } = await storage.survey(owner, [...parts.foreign]);
    for (const id of cancelRequested) parts.cancel(id);
    for (const { executionId, signals } of signalled) parts.hear(executionId, signals);
    await parts.lookForEnds();
    return nextDueAt === NEVER ? undefined : nextDueAt;
  };

  /** @throws OVERLOADED when the storage does not say: then what was given is given back once it answers */
  const isStillKnown = async (owner: string): Promise<boolean> => {
    await parts.doubt();
    if (parts.isSure(owner)) return true;
    if ((await parts.owner()) !== owner) return false;
    throw new OrchestratorError('OVERLOADED', 'the lease has ended and could not be renewed', { retryable: true });
  };

  const beat = () => {
    if (stopped) return;
    cancelBeat = clock.setTimer(beatMs, beat, { background: true });
    recovery.beat();
    beats += 1;
    if (beats % LOOKS !== 1) return;
    soon();
    purge.nowAndThen();
  };

  return {
    start() {
      if (started || !sharedCommits) return;
      started = true;
      if (shared) beat();
      const watching = storage.watch?.(soon);
      Promise.resolve(watching).then(
        (stop) => {
          unwatch = stop;
          if (stopped) void stop?.();
        },
        (error: unknown) => logger.warn({ err: error }, 'the storage can not tell what is new; it is asked for it'),
      );
    },
    wake(dueAt) {
      if (dueAt === undefined && parts.room() <= 0) more = true;
      else wakeAt(dueAt ?? 0);
    },
    freed() {
      if (more) soon();
      purge.nowAndThen();
    },
    turn: (limit) => turn(() => makeTurn(limit, shared ? recovery.lookIfDue : undefined)),
    async stop() {
      stopped = true;
      disarm();
      cancelBeat?.();
      await unwatch?.();
      await turning?.catch(() => undefined);
      purge.stop();
      await recovery.stop();
    },
  };
}
