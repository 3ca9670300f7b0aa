/**
 * This process as a worker: registers with the storage, renews its lease, and notices when the lease is lost.
 *
 * | the worker | then |
 * |---|---|
 * | registers | it may hold executions; other workers leave them alone until its lease or its process ends |
 * | did not renew until its lease was over | it starts nothing until the storage confirms that it is still registered |
 * | was considered dead | its executions belong to other workers: it stops its runs, and registers again under a new id |
 * | unregisters | other workers resume its executions at once |
 */

import { JournalLostError } from '../../engine/execution/journal.port.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { StorageRetry } from '../../engine/running/storage-retry.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';

export interface Lease {
  /** Whether no other worker can have reclaimed the executions of this one: it is registered, and its lease lasts. */
  isLeaseValid(worker: string): boolean;
  /** Resolves when the storage has renewed the lease. @throws JournalLostError when the worker was considered dead, or has unregistered */
  waitForLease(worker: string): Promise<void>;
}

export interface Worker extends Lease {
  /** Undefined before `register`, and after the lease was lost. */
  readonly id: string | undefined;
  /** Registers, unless it is registered. @returns the worker's id @throws what the storage throws */
  register(): MaybePromise<string>;
  /** Asks the storage once whether this worker is still registered, for example after a refused write. */
  verifyLease(): Promise<void>;
  unregister(): Promise<void>;
}

export interface WorkerDependencies {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly withRetry: StorageRetry;
  readonly leaseMs: number;
  readonly renewMs: number;
  /** Unix ms: what a dead process had claimed since then may be the cause of its death. */
  blameFrom(): number;
  newWorkerId(): string;
  /** Called when this worker was considered dead. */
  onLost(): void;
}

/** In a storage that no other process shares, a lease has no end. */
const FOR_EVER = Number.MAX_SAFE_INTEGER;

export function createWorker(dependencies: WorkerDependencies): Worker {
  const { storage, clock, logger, withRetry, leaseMs, renewMs } = dependencies;
  const { shared, timers } = storage.capabilities;
  const renews = shared && timers;
  let id: string | undefined;
  let registering: Promise<string> | undefined;
  let renewing: Promise<void> | undefined;
  let unregistered = false;
  let cancelTimer: (() => void) | undefined;
  /** The monotonic instant at which the current lease was requested: it lasts from the request on, not from the answer. */
  let askedAt = 0;
  /** The wall time at which other workers see the lease end: it also passes while the whole machine sleeps. */
  let leaseUntil = 0;
  /** For how long the clock of a test held back the last renewal. */
  let heldBackMs = 0;
  let verifying: (() => void)[] = [];

  const isLeaseValid = (worker: string) =>
    worker === id && (!renews || (clock.monotonic() - askedAt < leaseMs && clock.now() < leaseUntil));

  const onHeldBack = (ms: number) => {
    heldBackMs = ms;
  };

  const arm = (ms: number) => {
    cancelTimer?.();
    cancelTimer = clock.setTimer(ms, () => void renew(), { background: true, sweep: true, onHeldBack });
  };

  const notifyVerified = () => {
    const waiting = verifying;
    verifying = [];
    for (const resolve of waiting) resolve();
  };

  const renew = (): Promise<void> => {
    renewing ??= renewOnce().finally(() => {
      renewing = undefined;
    });
    return renewing;
  };

  const renewOnce = async (): Promise<void> => {
    const worker = id;
    if (worker === undefined || unregistered) return;
    const asked = clock.monotonic();
    const until = clock.now() + leaseMs;
    try {
      const known = await storage.workers.renew(worker, until);
      if (id !== worker || unregistered) return;
      // Measured at the answer: the event loop may have been blocked before the request was sent.
      const silentMs = clock.monotonic() - askedAt - heldBackMs;
      heldBackMs = 0;
      if (renews && silentMs > leaseMs) {
        const message = `the lease was not renewed for ${Math.round(silentMs)} ms (it lasts ${leaseMs}): the process was stopped, its event loop was blocked, or the storage did not answer; another process may have resumed its executions`;
        logger.warn({ worker, silentMs }, message);
      }
      if (!known) return lose(worker);
      [askedAt, leaseUntil] = [asked, until];
      // The answer may have arrived after the end of the lease that it confirms.
      if (isLeaseValid(worker)) notifyVerified();
      if (renews) arm(isLeaseValid(worker) ? renewMs : 0);
    } catch (error) {
      logger.warn({ err: error, worker }, 'the lease could not be renewed; it is tried again');
      if (id === worker && !unregistered) arm(Math.min(renewMs, 1000));
    }
  };

  const lose = (worker: string) => {
    logger.warn(
      { worker },
      'another process considered this process dead and resumed its executions; they are stopped here',
    );
    id = undefined;
    registering = undefined;
    cancelTimer?.();
    dependencies.onLost();
    notifyVerified();
  };

  const registered = (worker: string): string => {
    id = worker;
    registering = undefined;
    if (renews) arm(renewMs);
    return worker;
  };

  return {
    get id() {
      return id;
    },
    isLeaseValid,
    async waitForLease(worker) {
      while (id === worker && !unregistered && !isLeaseValid(worker)) {
        const verified = new Promise<void>((resolve) => verifying.push(resolve));
        // If this renewal fails, the timer renews again, which resolves the promise.
        void renew();
        await verified;
      }
      if (id !== worker || unregistered) throw new JournalLostError();
    },
    register() {
      if (id !== undefined) return id;
      if (registering) return registering;
      const worker = dependencies.newWorkerId();
      const answer = withRetry(() => {
        const now = clock.now();
        askedAt = clock.monotonic();
        leaseUntil = shared ? now + leaseMs : FOR_EVER;
        return storage.workers.register(worker, { now, leaseUntil, blameFrom: dependencies.blameFrom() });
      });
      if (!(answer instanceof Promise)) return registered(worker);
      registering = answer.then(
        () => registered(worker),
        (error) => {
          registering = undefined;
          throw error;
        },
      );
      return registering;
    },
    async verifyLease() {
      // A renewal that is in progress may have been requested before the lease was lost.
      await renewing;
      await renew();
    },
    async unregister() {
      unregistered = true;
      cancelTimer?.();
      notifyVerified();
      await registering?.catch(() => undefined);
      cancelTimer?.();
      if (id !== undefined) await storage.workers.unregister(id, clock.now());
    },
  };
}
