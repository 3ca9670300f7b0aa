/** The deliveries of the memory storage. */

import {
  type DeliveryState,
  firstDeliveryId,
  type NewDelivery,
  type StoredDelivery,
} from '../../../engine/delivery/delivery.ts';
import type { DeliveryQuery, DeliveryStore } from '../../../engine/delivery/delivery-store.port.ts';
import { compareKeys } from '../compare-bytes.ts';
import { type Due, insert, removeFirst } from './due/heap.ts';

export interface MemoryDeliveries extends DeliveryStore {
  /** Stores a delivery, unless its id is stored already. */
  put(delivery: NewDelivery): void;
}

/**
 * @param keep - how many deliveries are kept that are not pending, the newest first
 * @param keepBytes - how many characters their bodies may have
 */
export function memoryDeliveries(keep: number, keepBytes: number): MemoryDeliveries {
  const stored = new Map<string, StoredDelivery>();
  /** What is pending of each receiver. An entry counts while the delivery is due at its instant. */
  const due = new Map<string, Due[]>();
  /** The ids of those that are not pending, in the order in which they ended. */
  const ended = new Set<string>();
  let endedCharacters = 0;

  const first = (receiver: string): Due | undefined => {
    const heap = due.get(receiver);
    for (let entry = heap?.[0]; heap && entry; entry = heap[0]) {
      if (stored.get(entry.id)?.dueAt === entry.dueAt) return entry;
      removeFirst(heap);
    }
    due.delete(receiver);
    return undefined;
  };

  const remove = (id: string) => {
    if (ended.delete(id)) endedCharacters -= stored.get(id)?.body.length ?? 0;
    stored.delete(id);
  };

  const store = (delivery: StoredDelivery) => {
    const { id, receiver, dueAt, body } = delivery;
    if (ended.delete(id)) endedCharacters -= body.length;
    stored.set(id, delivery);
    if (dueAt !== undefined) {
      const heap = due.get(receiver) ?? [];
      due.set(receiver, heap);
      insert(heap, { id, dueAt, nr: 0 });
      return;
    }
    ended.add(id);
    endedCharacters += body.length;
    for (const oldest of ended) {
      if (ended.size <= keep && endedCharacters <= keepBytes) return;
      remove(oldest);
    }
  };

  return {
    put(delivery) {
      if (stored.has(delivery.id)) return;
      const fresh = { status: 'pending', attempts: 0, attemptsBefore: 0, log: [] } as const;
      store({ ...delivery, ...fresh, dueAt: delivery.createdAt });
    },
    receivers(after, limit) {
      const receivers = [...due.keys()].filter((receiver) => compareKeys(receiver, after) > 0).sort(compareKeys);
      const found = receivers.map((receiver) => ({ receiver, dueAt: first(receiver)?.dueAt }));
      return found.filter((one): one is { receiver: string; dueAt: number } => one.dueAt !== undefined).slice(0, limit);
    },
    claim(receiver, { now, until, limit }) {
      const claimed: StoredDelivery[] = [];
      for (
        let entry = first(receiver);
        entry && entry.dueAt <= now && claimed.length < limit;
        entry = first(receiver)
      ) {
        const delivery = { ...(stored.get(entry.id) as StoredDelivery), dueAt: until };
        store(delivery);
        claimed.push(delivery);
      }
      return claimed.sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    settle(results) {
      let count = 0;
      for (const { id, expectedAttempts, status, attempts, dueAt, log } of results) {
        const known = stored.get(id);
        if (known?.status !== 'pending' || known.attempts !== expectedAttempts) continue;
        const { dueAt: _, ...kept } = known;
        store({ ...kept, status, attempts, log, ...(dueAt !== undefined && { dueAt }) });
        count += 1;
      }
      return count;
    },
    requeue(ids, now) {
      let count = 0;
      for (const id of ids) {
        const known = stored.get(id);
        if (!known || known.status === 'pending') continue;
        store({ ...known, status: 'pending', dueAt: now, attemptsBefore: known.attempts });
        count += 1;
      }
      return count;
    },
    get: (id) => stored.get(id),
    list(query) {
      return [...stored.values()]
        .filter(matches(query))
        .sort((a, b) => (a.id < b.id ? 1 : -1))
        .slice(0, query.limit)
        .map(({ body: _, ...state }) => state);
    },
    purge(before, limit) {
      const end = firstDeliveryId(before);
      const old = [...ended].filter((id) => id < end).slice(0, limit);
      for (const id of old) remove(id);
      return old.length;
    },
  };
}

function matches({ executionId, ensemble, status, receiver, since, until, before }: DeliveryQuery) {
  const [from, to] = [since, until].map((at) => (at === undefined ? undefined : firstDeliveryId(at)));
  return (delivery: DeliveryState): boolean =>
    (executionId === undefined || delivery.executionId === executionId) &&
    (ensemble === undefined || delivery.ensemble === ensemble) &&
    (status === undefined || delivery.status === status) &&
    (receiver === undefined || delivery.receiver === receiver) &&
    (from === undefined || delivery.id >= from) &&
    (to === undefined || delivery.id < to) &&
    (before === undefined || delivery.id < before);
}
