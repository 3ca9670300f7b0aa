/**
 * The engine as an owner: it joins the storage, renews its lease, and hears when it was taken for dead.
 *
 * | it ... | then |
 * |---|---|
 * | joins | it may hold executions; others leave them alone until its lease ends or its process does |
 * | stood still until its lease was over | it begins nothing before the storage has said that it is still known |
 * | finds itself forgotten | what it held belongs to others: it drops its runs, and joins again under a new id |
 * | leaves | others go on at once |
 */

import type { Clock } from '../../engine/ports/clock.ts';
import { JournalLostError } from '../../engine/ports/journal.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import type { Patience } from './patience.ts';

/** Whether what an owner holds is still its own. */
export interface Lease {
  /** Whether nobody else can have taken over from this owner by now: it is known, and its lease lasts. */
  isSure(owner: string): boolean;
  /** Waits until the storage has renewed the lease. @throws JournalLostError when the owner was taken for dead, or has left */
  confirm(owner: string): Promise<void>;
}

export interface Owner extends Lease {
  /** Undefined before `join` and after a loss. */
  readonly id: string | undefined;
  /** Joins, if it has not. @throws what the storage throws */
  join(): MaybePromise<string>;
  /** Asks the storage whether this owner is still known, once: when a write was refused, for one. */
  doubt(): Promise<void>;
  leave(): Promise<void>;
}

export interface OwnerParts {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly patiently: Patience;
  readonly leaseMs: number;
  readonly renewMs: number;
  /** From when on what a dead process had claimed may be what it died of (Unix ms). */
  blameFrom(): number;
  newOwner(): string;
  /** Called when it was taken for dead. */
  onLost(): void;
}

/** Where nobody else can take over, a lease has no end. */
const FOR_EVER = Number.MAX_SAFE_INTEGER;

export function createOwner(parts: OwnerParts): Owner {
  const { storage, clock, logger, patiently, leaseMs, renewMs } = parts;
  const { shared, sharedCommits } = storage.capabilities;
  const renews = shared && sharedCommits;
  let id: string | undefined;
  let joining: Promise<string> | undefined;
  let renewing: Promise<void> | undefined;
  let left = false;
  let cancelTimer: (() => void) | undefined;
  /** The monotonic instant at which the lease was asked for that lasts now: it lasts from then on, not from the answer. */
  let askedAt = 0;
  /** The wall time at which others see it end: it passes also while the whole machine sleeps. */
  let leaseUntil = 0;
  let doubtful: (() => void)[] = [];

  const isSure = (owner: string) =>
    owner === id && (!renews || (clock.monotonic() - askedAt < leaseMs && clock.now() < leaseUntil));

  const arm = (ms: number) => {
    cancelTimer?.();
    cancelTimer = clock.setTimer(ms, () => void renew(), { background: true });
  };

  const tellDoubtful = () => {
    const told = doubtful;
    doubtful = [];
    for (const tell of told) tell();
  };

  const renew = (): Promise<void> => {
    renewing ??= renewOnce().finally(() => {
      renewing = undefined;
    });
    return renewing;
  };

  const renewOnce = async (): Promise<void> => {
    const owner = id;
    if (owner === undefined || left) return;
    const asked = clock.monotonic();
    const until = clock.now() + leaseMs;
    try {
      const known = await storage.renew(owner, until);
      if (id !== owner || left) return;
      // Seen at the answer: the loop may have been blocked before the question had left.
      const silentMs = clock.monotonic() - askedAt;
      if (renews && silentMs > leaseMs) {
        const message = `the lease was not renewed for ${Math.round(silentMs)} ms (it lasts ${leaseMs}): the process stood still, its event loop was blocked, or the storage did not answer; another process may have gone on with its executions`;
        logger.warn({ owner, silentMs }, message);
      }
      if (!known) return lose(owner);
      [askedAt, leaseUntil] = [asked, until];
      // The answer may have come when what it gave was over.
      if (isSure(owner)) tellDoubtful();
      if (renews) arm(isSure(owner) ? renewMs : 0);
    } catch (error) {
      logger.warn({ err: error, owner }, 'the lease could not be renewed; it is tried again');
      if (id === owner && !left) arm(Math.min(renewMs, 1000));
    }
  };

  const lose = (owner: string) => {
    logger.warn(
      { owner },
      'another process took this one for dead and goes on with its executions; they are dropped here',
    );
    id = undefined;
    joining = undefined;
    cancelTimer?.();
    parts.onLost();
    tellDoubtful();
  };

  const joined = (owner: string): string => {
    id = owner;
    joining = undefined;
    if (renews) arm(renewMs);
    return owner;
  };

  return {
    get id() {
      return id;
    },
    isSure,
    async confirm(owner) {
      while (id === owner && !left && !isSure(owner)) {
        const told = new Promise<void>((resolve) => doubtful.push(resolve));
        // What can't be asked now is asked again by the timer, and tells then.
        void renew();
        await told;
      }
      if (id !== owner || left) throw new JournalLostError();
    },
    join() {
      if (id !== undefined) return id;
      if (joining) return joining;
      const owner = parts.newOwner();
      const answer = patiently(() => {
        const now = clock.now();
        askedAt = clock.monotonic();
        leaseUntil = shared ? now + leaseMs : FOR_EVER;
        return storage.join(owner, { now, leaseUntil, blameFrom: parts.blameFrom() });
      });
      if (!(answer instanceof Promise)) return joined(owner);
      joining = answer.then(
        () => joined(owner),
        (error) => {
          joining = undefined;
          throw error;
        },
      );
      return joining;
    },
    async doubt() {
      // What is under way may have been asked too early to tell.
      await renewing;
      await renew();
    },
    async leave() {
      left = true;
      cancelTimer?.();
      tellDoubtful();
      await joining?.catch(() => undefined);
      cancelTimer?.();
      if (id !== undefined) await storage.leave(id, clock.now());
    },
  };
}
