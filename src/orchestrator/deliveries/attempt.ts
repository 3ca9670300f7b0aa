/** One attempt of a delivery, and what becomes of the delivery after it (the specification's delivery retry). */

import { type DeliveryAttempt, KEPT_ATTEMPTS, type StoredDelivery } from '../../engine/delivery/delivery.ts';
import type { NotificationTarget } from '../../engine/delivery/notification.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { SettledDelivery } from '../../engine/storage/storage.port.ts';
import type { AttemptOutcome } from './send-webhook.ts';

/** ms before each retry. */
const DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 300_000] as const;
/** The longest wait that a receiver can ask for, in ms. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** What is stored of a delivery that was claimed, and for which no attempt was made. @param dueAt - Unix ms, of a pending one */
export function withoutAttempt(
  { id, attempts, log }: StoredDelivery,
  status: 'pending' | 'paused',
  dueAt?: number,
): SettledDelivery {
  return { id, expectedAttempts: attempts, status, attempts, log, ...(dueAt !== undefined && { dueAt }) };
}

/** A delivery whose attempt has ended. */
export interface EndedAttempt {
  readonly settled: SettledDelivery;
  readonly attempt: DeliveryAttempt;
  readonly outcome: AttemptOutcome;
  /** Whether it was the first attempt since the delivery was stored or sent again. */
  readonly isFirst: boolean;
}

export async function attemptDelivery(
  delivery: StoredDelivery,
  { retries }: NotificationTarget,
  clock: Clock,
  send: (attempt: number) => Promise<AttemptOutcome>,
): Promise<EndedAttempt> {
  const { id, attempts: expectedAttempts, attemptsBefore } = delivery;
  const attempts = expectedAttempts + 1;
  const at = clock.now();
  const began = clock.monotonic();
  const outcome = await send(attempts);
  const { result, status, error, excerpt, retryAfterMs = 0 } = outcome;
  const attempt: DeliveryAttempt = {
    ...{ attempt: attempts, at, duration: Math.round(clock.monotonic() - began) },
    ...(status !== undefined && { status }),
    ...(error !== undefined && { error }),
    ...(excerpt !== undefined && { excerpt }),
  };
  const log = [...delivery.log, attempt].slice(-KEPT_ATTEMPTS);
  const made = attempts - attemptsBefore;
  const ended = { attempt, outcome, isFirst: made === 1 };
  const settled = { id, expectedAttempts, attempts, log };
  if (result !== 'broken' || made > retries) {
    return { ...ended, settled: { ...settled, status: result === 'succeeded' ? 'succeeded' : 'failed' } };
  }
  const delayMs = Math.max(DELAYS_MS[made - 1] ?? 0, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
  return { ...ended, settled: { ...settled, status: 'pending', dueAt: clock.now() + delayMs } };
}
