/**
 * Receivers that fail. A receiver that answers 410, or whose first attempts fail for three days, is paused: its deliveries are kept and not
 * sent, until it is resumed by a call, or by a delivery that is sent as a probe and succeeds.
 */

import type { JsonObject } from '../../engine/base/json/json.ts';
import { inPortions } from '../../engine/base/portions.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { DeliveryStore, DocumentStore, StoredDocument } from '../../engine/storage/storage.port.ts';
import { allDocuments } from '../all-documents.ts';
import type { EndedAttempt } from './attempt.ts';

/** Why a receiver is paused. `gone`: it answered 410. `failing`: its first attempts failed for three days. */
export type PauseReason = 'gone' | 'failing';

/** What is stored of a receiver that fails. */
export interface ReceiverState {
  /** For people: the address of the webhook, with secrets masked, or the name of the mail sender. */
  readonly address: string;
  /** Unix ms of the first of its failures. */
  readonly failingSince: number;
  /** How many spans of ten minutes had failures. */
  readonly failures: number;
  readonly pausedAt?: number;
  readonly reason?: PauseReason;
  /** Unix ms from which on one delivery is sent as a probe. Absent: it is only resumed by a call. */
  readonly probeAt?: number;
}

export interface FailingReceiver extends ReceiverState {
  readonly receiver: string;
}

export interface Receivers {
  /** Whether a delivery to it is sent now. Of a paused receiver, one is sent as a probe when it is time. */
  admit(receiver: string): Promise<boolean>;
  /** Counts the result of an attempt. @returns why the receiver was paused by it */
  report(receiver: string, address: string, attempt: EndedAttempt): Promise<PauseReason | undefined>;
  /** Ends a pause: what was paused is due again. @returns how many deliveries, undefined if the receiver was not paused */
  resume(receiver: string): Promise<number | undefined>;
  /**
   * Makes one delivery of each paused receiver due that is to be probed.
   * @returns the instant (Unix ms) at which the next receiver is to be probed
   */
  probe(): Promise<number | undefined>;
  /** A receiver that fails. */
  find(receiver: string): Promise<ReceiverState | undefined>;
  list(): Promise<readonly FailingReceiver[]>;
}

const KIND = 'receiver';
const PAUSED_AFTER_MS = 3 * 86_400_000;
const MIN_FAILURES = 5;
const COUNTED_EVERY_MS = 600_000;
const PROBED_EVERY_MS = 3_600_000;
/** How long a process goes by what it has read. */
const KEPT_MS = 5_000;
const PAGE = 500;

export function createReceivers(documents: DocumentStore, deliveries: DeliveryStore, clock: Clock): Receivers {
  const known = new Map<string, { readonly stored: StoredDocument | undefined; readonly readAt: number }>();

  const read = async (receiver: string): Promise<StoredDocument | undefined> => {
    const kept = known.get(receiver);
    const now = clock.now();
    if (kept && now - kept.readAt < KEPT_MS && now >= kept.readAt) return kept.stored;
    const stored = await documents.read(KIND, receiver, now);
    if (known.size >= 10_000) known.clear();
    known.set(receiver, { stored, readAt: now });
    return stored;
  };

  /** @returns false if another process was faster */
  const write = async (receiver: string, expected: StoredDocument | undefined, state?: ReceiverState) => {
    const now = clock.now();
    known.delete(receiver);
    const document = state && { value: state as unknown as JsonObject, tag: '', updatedAt: now };
    return documents.write(KIND, receiver, {
      expectedVersion: expected?.version ?? 0,
      now,
      ...(document && { document }),
    });
  };

  const requeueAll = async (receiver: string): Promise<number> => {
    let count = 0;
    let before: string | undefined;
    const portions = inPortions(clock, PAGE);
    for (let isEnd = false; !isEnd; )
      await portions.next(async (limit) => {
        const page = await deliveries.list({ receiver, status: 'paused', limit, ...(before && { before }) });
        const ids = page.map(({ id }) => id);
        count += await deliveries.requeue(ids, clock.now());
        before = ids.at(-1);
        isEnd = page.length < limit;
      });
    return count;
  };

  const resume = async (receiver: string): Promise<number | undefined> => {
    const stored = await documents.read(KIND, receiver, clock.now());
    if (!stored || stateOf(stored).pausedAt === undefined) return undefined;
    await write(receiver, stored);
    return requeueAll(receiver);
  };

  const list = async (): Promise<readonly FailingReceiver[]> => {
    const found = await allDocuments(documents, KIND, clock);
    return found.map((document) => ({ receiver: document.name, ...stateOf(document) }));
  };

  const count = async (
    receiver: string,
    address: string,
    stored: StoredDocument | undefined,
    isGone: boolean,
  ): Promise<PauseReason | undefined> => {
    const now = clock.now();
    const state = stored ? stateOf(stored) : { address, failingSince: now, failures: 0 };
    if (state.pausedAt !== undefined) return undefined;
    const isCounted = !stored || now - stored.updatedAt >= COUNTED_EVERY_MS;
    const failures = state.failures + (isCounted ? 1 : 0);
    const isFailing = now - state.failingSince >= PAUSED_AFTER_MS && failures >= MIN_FAILURES;
    const reason = isGone ? 'gone' : isFailing ? 'failing' : undefined;
    if (!reason) {
      if (isCounted) await write(receiver, stored, { ...state, failures });
      return undefined;
    }
    const probes = reason === 'failing' ? { probeAt: now + PROBED_EVERY_MS } : {};
    const isWritten = await write(receiver, stored, { ...state, failures, pausedAt: now, reason, ...probes });
    return isWritten ? reason : undefined;
  };

  return {
    async admit(receiver) {
      const stored = await read(receiver);
      const state = stored && stateOf(stored);
      if (state?.pausedAt === undefined) return true;
      const now = clock.now();
      if (state.probeAt === undefined || state.probeAt > now) return false;
      return write(receiver, stored, { ...state, probeAt: now + PROBED_EVERY_MS });
    },
    async report(receiver, address, { outcome, isFirst }) {
      const stored = await read(receiver);
      if (outcome.result === 'succeeded') {
        if (!stored) return undefined;
        const isPaused = stateOf(stored).pausedAt !== undefined;
        if (isPaused) await resume(receiver);
        else await write(receiver, stored);
        return undefined;
      }
      return isFirst || outcome.isGone ? count(receiver, address, stored, outcome.isGone === true) : undefined;
    },
    resume,
    async probe() {
      const now = clock.now();
      let next: number | undefined;
      for (const { receiver, probeAt } of await list()) {
        if (probeAt === undefined) continue;
        const isDue = probeAt <= now;
        const [newest] = isDue ? await deliveries.list({ receiver, status: 'paused', limit: 1 }) : [];
        if (newest) await deliveries.requeue([newest.id], now);
        next = Math.min(next ?? Number.POSITIVE_INFINITY, isDue ? now + PROBED_EVERY_MS : probeAt);
      }
      return next;
    },
    async find(receiver) {
      const stored = await documents.read(KIND, receiver, clock.now());
      return stored && stateOf(stored);
    },
    list,
  };
}

function stateOf({ value }: StoredDocument): ReceiverState {
  return value as unknown as ReceiverState;
}
