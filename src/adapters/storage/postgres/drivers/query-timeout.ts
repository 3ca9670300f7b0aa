/** Timeouts for calls to Postgres. A call that times out is rejected; its work may continue. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { transferMs } from '../../with-storage-timeout.ts';
import { type SqlParam, statement } from './driver.ts';

/** A process that hangs in a transaction, or whose host is gone, must not block the others for longer. */
const MAX_IDLE_MS = 5000;

/**
 * Begins a transaction, which the server ends when it is idle for some time.
 * @param before - runs in a transaction of its own before, whose writes may be lost until a later one is stored
 */
export async function begin(
  control: (text: string) => Promise<unknown>,
  timeoutMs: number,
  before: (() => Promise<unknown>) | undefined,
): Promise<void> {
  const text = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${Math.min(timeoutMs, MAX_IDLE_MS)}`;
  if (!before) return void (await control(text));
  await control(`${text}; SET LOCAL synchronous_commit = off`);
  await before();
  await control(`COMMIT; ${text}`);
}

/**
 * Runs in a transaction with a number of ms. A statement that waits longer for a lock fails with the code below.
 * Without it, the transaction would wait as long as the holder of the lock hangs.
 */
export const WAIT_FOR_LOCKS = statement(`SELECT set_config('lock_timeout', $1, true) AS set`, ['set']);
export const LOCK_NOT_AVAILABLE = '55P03';

/**
 * @param onTimeout - called before the returned promise is rejected with OVERLOADED
 * @param sent - the parameters that are sent to the server; each MiB allows 1 s more
 * @returns the result of `work`
 */
export type WithTimeout = <T>(work: Promise<T>, onTimeout?: () => void, sent?: readonly SqlParam[]) => Promise<T>;

interface Waiting {
  readonly since: number;
  readonly sent: readonly SqlParam[] | undefined;
  onTimeout(ms: number): void;
}

/** How often a waiting call is checked during its timeout, so a timeout is exact to a tenth. */
const CHECKS = 10;

/** One timer serves all waiting calls, because a timer for each would cost as much as the rest of a short call. */
export function createTimeout(timeoutMs: number): WithTimeout {
  /** In the order in which they started. */
  const waiting = new Set<Waiting>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isUsed = false;

  const check = () => {
    timer = undefined;
    const now = performance.now();
    for (const call of waiting) {
      if (now - call.since < timeoutMs) break;
      // The size is computed only when it matters.
      const limitMs = timeoutMs + transferMs(textLength(call.sent));
      if (now - call.since < limitMs) continue;
      waiting.delete(call);
      call.onTimeout(limitMs);
    }
    if (waiting.size > 0 || isUsed) arm();
  };

  const arm = () => {
    isUsed = false;
    timer = setTimeout(check, timeoutMs / CHECKS);
    // The connection of a waiting call keeps the process running; the timer need not.
    (timer as { unref?(): void }).unref?.();
  };

  return (work, onTimeout, sent) =>
    new Promise((resolve, reject) => {
      const call: Waiting = {
        since: performance.now(),
        sent,
        onTimeout(ms) {
          onTimeout?.();
          const message = `Postgres did not answer within ${ms} ms; whether it was stored is not known, try again`;
          reject(new OrchestratorError('OVERLOADED', message, { details: { timeoutMs: ms }, retryable: true }));
        },
      };
      waiting.add(call);
      isUsed = true;
      if (timer === undefined) arm();
      work.then(
        (value) => {
          waiting.delete(call);
          resolve(value);
        },
        (error) => {
          waiting.delete(call);
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
 * Runs a driver's transaction. Its start and its end have the timeout, and so has each query of `work`. `work` as a
 * whole has none, because a migration may take long.
 */
export async function transactWithTimeout<Transaction, T>(
  withTimeout: WithTimeout,
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
  await withTimeout(either(beginning), () => {
    isOver = true;
    done.catch(() => undefined);
  });
  await either(working);
  return withTimeout(done);
}
