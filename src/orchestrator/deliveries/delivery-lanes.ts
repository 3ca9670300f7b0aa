/**
 * Sends deliveries: a lane for each receiver, so that a slow one delays no other. A lane takes due deliveries from the storage, sends a
 * few at a time, and stores what became of them.
 */

import { turnOf } from '../../engine/base/time/next-turn.ts';
import type { StoredDelivery } from '../../engine/delivery/delivery.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { DeliveryStore, SettledDelivery } from '../../engine/storage/storage.port.ts';
import { withoutAttempt } from './attempt.ts';

export interface DeliveryLanes {
  /** Takes what is due and begins to send it. @returns the instant (Unix ms) at which something of another time is due */
  pump(): Promise<number | undefined>;
  /** Resolves when nothing is being sent, and all results are stored. */
  idle(): Promise<void>;
  /** Takes nothing more, and gives back what was not begun. Resolves as `idle`. */
  stop(): Promise<void>;
}

export interface LaneDependencies {
  readonly store: DeliveryStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * Sends one delivery. If it rejects, nothing is stored, and the delivery is due again when its claim is over.
   * @param until - Unix ms at which the claim is over
   * @returns what is to be stored
   */
  send(delivery: StoredDelivery, until: number): Promise<SettledDelivery>;
  /** Something is due at an instant (Unix ms) from now on. */
  onDue(at: number): void;
}

/** How many deliveries to one receiver are sent at the same time, and how many in all. */
const MAX_IN_LANE = 10;
const MAX_IN_ALL = 500;
/** How many deliveries one claim takes: fewer if they are large. */
const CLAIMED = 50;
const CLAIMED_IF_LARGE = MAX_IN_LANE;
const LARGE = 16 * 1024;
/** What a process has claimed and has not settled is due again after this time. */
const CLAIM_MS = 60_000;
const PAGE = 1000;
const SETTLED_AT_ONCE = 160;
/** A result waits for others for at most this number of turns of the event loop. */
const SETTLE_TURNS = 4;
const FEW_SETTLED = 32;
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 10_000;

interface Claimed {
  readonly delivery: StoredDelivery;
  readonly until: number;
}

interface Lane {
  readonly receiver: string;
  waiting: Claimed[];
  active: number;
  /** More may be due than the last claim took. */
  more: boolean;
  filling: Promise<void> | undefined;
  isLarge: boolean;
}

export function createDeliveryLanes({ store, clock, logger, send, onDue }: LaneDependencies): DeliveryLanes {
  const lanes = new Map<string, Lane>();
  let active = 0;
  let stopped = false;
  let settled: SettledDelivery[] = [];
  let settling: Promise<void> | undefined;
  const waiters: (() => void)[] = [];

  const isIdle = () => active === 0 && settled.length === 0 && !settling && ![...lanes.values()].some(isBusy);
  const isBusy = ({ waiting, filling }: Lane) => waiting.length > 0 || filling !== undefined;
  const checkIdle = () => {
    if (waiters.length === 0 || !isIdle()) return;
    for (const resolve of waiters.splice(0)) resolve();
  };

  const settleAll = async () => {
    // Results that arrive in the same turns are stored together.
    for (let turns = 0; turns < SETTLE_TURNS && settled.length < FEW_SETTLED; turns += 1) await turnOf(clock);
    for (let pauseMs = FIRST_PAUSE_MS; settled.length > 0; ) {
      const batch = settled.slice(0, SETTLED_AT_ONCE);
      try {
        await store.settle(batch);
        settled = settled.slice(batch.length);
        pauseMs = FIRST_PAUSE_MS;
        for (const { dueAt } of batch) if (dueAt !== undefined) onDue(dueAt);
      } catch (err) {
        // What is not stored in time is sent again.
        if (stopped) settled = [];
        logger.warn(
          { err, deliveries: settled.length },
          'the results of deliveries could not be stored; they are stored later',
        );
        await clock.sleep(pauseMs);
        pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
      }
    }
    settling = undefined;
    checkIdle();
  };
  const settle = (result: SettledDelivery) => {
    settled.push(result);
    settling ??= settleAll();
  };

  const begin = (lane: Lane, { delivery, until }: Claimed) => {
    lane.active += 1;
    active += 1;
    const onEnd = () => {
      lane.active -= 1;
      active -= 1;
      if (active === MAX_IN_ALL - 1) for (const other of lanes.values()) advance(other);
      else advance(lane);
      checkIdle();
    };
    send(delivery, until).then(
      (result) => {
        settle(result);
        onEnd();
      },
      (err: unknown) => {
        logger.error({ err, delivery: delivery.id }, 'a delivery could not be sent; it is sent again later');
        onEnd();
      },
    );
  };

  /** Sends what waits in a lane, and takes more when nothing does. */
  const advance = (lane: Lane): void => {
    while (lane.active < MAX_IN_LANE && active < MAX_IN_ALL) {
      const next = lane.waiting.shift();
      if (!next) break;
      begin(lane, next);
    }
    if (lane.waiting.length > 0 || lane.active >= MAX_IN_LANE) return;
    if (lane.more && !stopped) void fill(lane).catch((err) => onUnfilled(err, lane));
    else if (lane.active === 0 && !lane.filling) lanes.delete(lane.receiver);
  };
  const onUnfilled = (err: unknown, { receiver }: Lane) => {
    logger.warn({ err, receiver }, 'deliveries could not be read; they are read again later');
    onDue(clock.now() + FIRST_PAUSE_MS);
  };

  const claim = async (lane: Lane): Promise<void> => {
    const now = clock.now();
    const until = now + CLAIM_MS;
    const limit = lane.isLarge ? CLAIMED_IF_LARGE : CLAIMED;
    lane.more = false;
    const claimed = await store.claim(lane.receiver, { now, until, limit });
    lane.more ||= claimed.length === limit;
    lane.isLarge = claimed.some(({ body }) => body.length > LARGE);
    for (const delivery of claimed) lane.waiting.push({ delivery, until });
    if (stopped) giveBack(lane);
  };

  const fill = async (lane: Lane): Promise<void> => {
    if (lane.filling || lane.waiting.length > 0 || lane.active >= MAX_IN_LANE) {
      lane.more = true;
      return lane.filling;
    }
    lane.filling = claim(lane);
    try {
      await lane.filling;
    } finally {
      lane.filling = undefined;
      advance(lane);
      checkIdle();
    }
  };

  const giveBack = (lane: Lane) => {
    for (const { delivery } of lane.waiting.splice(0)) settle(withoutAttempt(delivery, 'pending', clock.now()));
  };

  const laneOf = (receiver: string): Lane => {
    const known = lanes.get(receiver);
    if (known) return known;
    const lane = { receiver, waiting: [], active: 0, more: false, filling: undefined, isLarge: false };
    lanes.set(receiver, lane);
    return lane;
  };

  const idle = () =>
    new Promise<void>((resolve) => {
      waiters.push(resolve);
      checkIdle();
    });

  return {
    async pump() {
      let next: number | undefined;
      for (let after = ''; !stopped; ) {
        const page = await store.receivers(after, PAGE);
        const now = clock.now();
        const fills: Promise<void>[] = [];
        for (const { receiver, dueAt } of page) {
          if (dueAt <= now) fills.push(fill(laneOf(receiver)));
          else if (next === undefined || dueAt < next) next = dueAt;
        }
        await Promise.all(fills);
        after = page.at(-1)?.receiver ?? '';
        if (page.length < PAGE) break;
      }
      return next;
    },
    idle,
    stop() {
      stopped = true;
      for (const lane of lanes.values()) giveBack(lane);
      return idle();
    },
  };
}
