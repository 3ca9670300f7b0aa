/** Sees to it that no call waits for ever: what has no answer in time is rejected, and goes on by itself. */

import { OrchestratorError } from '../../../engine/errors.ts';
import { transferMs } from '../answers-in-time.ts';
import { type SqlParam, statement } from './sql-client.ts';

/** A process that stands still within a transaction, or whose host is gone, must not hold up the others. */
const MOST_IDLE_MS = 5000;

/** Runs at the begin of a transaction: it ends when nothing comes up in it for so long. */
export const endIdleAfter = (timeoutMs: number) =>
  `SET LOCAL idle_in_transaction_session_timeout = ${Math.min(timeoutMs, MOST_IDLE_MS)}`;

/**
 * Run in a transaction: whoever waits in it for longer than so many ms for what another one holds gives up, with the code below.
 * Without it, those who wait would hang for as long as the one that they wait for.
 */
export const WAIT_FOR_LOCKS = statement(`SELECT set_config('lock_timeout', $1, true) AS set`, ['set']);
export const LOCK_NOT_AVAILABLE = '55P03';

/**
 * @param sent - what the server has to be sent for it: 1 s more for each MiB
 * @returns what `work` gives; rejected as OVERLOADED, behind `onTimeout`, when it gives nothing in time
 */
export type TimeLimit = <T>(work: Promise<T>, onTimeout?: () => void, sent?: readonly SqlParam[]) => Promise<T>;

interface Waiting {
  readonly since: number;
  readonly sent: readonly SqlParam[] | undefined;
  giveUp(ms: number): void;
}

/** How often what waits is looked at while it waits: the limit is met to a tenth. */
const LOOKS = 10;

/** One timer stands for all that wait: one for each of them costs as much as the rest of a short call. */
export function createTimeLimit(timeoutMs: number): TimeLimit {
  /** In the order in which they began. */
  const waiting = new Set<Waiting>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isUsed = false;

  const look = () => {
    timer = undefined;
    const now = performance.now();
    for (const one of waiting) {
      if (now - one.since < timeoutMs) break;
      // Its size is not asked for before it matters.
      const limitMs = timeoutMs + transferMs(textLength(one.sent));
      if (now - one.since < limitMs) continue;
      waiting.delete(one);
      one.giveUp(limitMs);
    }
    if (waiting.size > 0 || isUsed) arm();
  };

  const arm = () => {
    isUsed = false;
    timer = setTimeout(look, timeoutMs / LOOKS);
    // Who waits has a connection that keeps the process from ending.
    (timer as { unref?(): void }).unref?.();
  };

  return (work, onTimeout, sent) =>
    new Promise((resolve, reject) => {
      const one: Waiting = {
        since: performance.now(),
        sent,
        giveUp(ms) {
          onTimeout?.();
          const message = `Postgres did not answer within ${ms} ms; whether it was stored is not known, try again`;
          reject(new OrchestratorError('OVERLOADED', message, { details: { timeoutMs: ms }, retryable: true }));
        },
      };
      waiting.add(one);
      isUsed = true;
      if (timer === undefined) arm();
      work.then(
        (value) => {
          waiting.delete(one);
          resolve(value);
        },
        (error) => {
          waiting.delete(one);
          reject(error);
        },
      );
    });
}

function textLength(params: readonly SqlParam[] | undefined): number {
  let length = 0;
  for (const param of params ?? []) if (typeof param === 'string') length += param.length;
  return length;
}

/**
 * Runs a transaction of a driver: the waits until it begins and for its end are limited, and so is each query of `work`; `work`
 * itself is not, because a migration takes as long as it takes.
 */
export async function transactInTime<Transaction, T>(
  inTime: TimeLimit,
  transact: (work: (transaction: Transaction) => Promise<T>) => Promise<T>,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  let begun = () => {};
  let worked = () => {};
  let isOver = false;
  const beginning = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const working = new Promise<void>((resolve) => {
    worked = resolve;
  });
  const done = transact(async (transaction) => {
    if (isOver) throw new OrchestratorError('OVERLOADED', 'the transaction began too late', { retryable: true });
    begun();
    try {
      return await work(transaction);
    } finally {
      worked();
    }
  });
  const either = (until: Promise<void>) => Promise.race([until, done.then(() => undefined)]);
  await inTime(either(beginning), () => {
    isOver = true;
    done.catch(() => undefined);
  });
  await either(working);
  return inTime(done);
}
