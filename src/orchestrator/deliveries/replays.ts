/** Jobs that send many deliveries again. Each step of a job is stored, so any process continues it. */

import type { JsonObject } from '../../engine/base/json.ts';
import type { IdSource } from '../../engine/model/id.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { DeliveryQuery, DeliveryStore, DocumentStore, StoredDocument } from '../../engine/ports/storage.ts';
import { allDocuments } from '../all-documents.ts';

/** A job of `replay`. Instants are Unix ms. */
export interface Replay {
  readonly id: string;
  readonly status: 'running' | 'completed';
  /** How many deliveries are due again by it. */
  readonly redelivered: number;
  readonly createdAt: number;
}

export interface Replays {
  create(query: Omit<DeliveryQuery, 'limit' | 'before'>): Promise<Replay>;
  /** Does one step of each running job. @returns whether there is more to do */
  advance(): Promise<boolean>;
  list(): Promise<readonly Replay[]>;
}

interface StoredReplay extends Omit<Replay, 'id'> {
  readonly query: Omit<DeliveryQuery, 'limit' | 'before'>;
  /** The last delivery of the step before. */
  readonly before?: string;
}

const KIND = 'replay';
const KEPT_MS = 7 * 86_400_000;
const STEP = 500;

export function createReplays(
  documents: DocumentStore,
  deliveries: DeliveryStore,
  { clock, ids }: { readonly clock: Clock; readonly ids: IdSource },
): Replays {
  const write = (id: string, expectedVersion: number, job: StoredReplay) => {
    const now = clock.now();
    const document = { value: job as unknown as JsonObject, tag: '', updatedAt: now, expiresAt: now + KEPT_MS };
    return documents.write(KIND, id, { expectedVersion, document, now });
  };
  const list = () => allDocuments(documents, KIND, clock.now());

  /** @returns whether there is more to do */
  const step = async ({ name, version }: StoredDocument, job: StoredReplay): Promise<boolean> => {
    const { query, before } = job;
    const page = await deliveries.list({ ...query, ...(before !== undefined && { before }), limit: STEP });
    const ids = page.filter(({ status }) => status !== 'pending').map(({ id }) => id);
    const count = await deliveries.requeue(ids, clock.now());
    const isLast = page.length < STEP;
    const next = { ...job, before: page.at(-1)?.id ?? before, redelivered: job.redelivered + count };
    // Another process may have done the same step: then its count is stored.
    await write(name, version, { ...next, status: isLast ? 'completed' : 'running' } as StoredReplay);
    return !isLast;
  };

  return {
    async create(query) {
      const createdAt = clock.now();
      const id = ids.id('job_', createdAt);
      const job = { query, status: 'running', redelivered: 0, createdAt } as const;
      await write(id, 0, job);
      return toReplay(id, job);
    },
    async advance() {
      let isMore = false;
      for (const document of await list()) {
        const job = document.value as unknown as StoredReplay;
        if (job.status === 'running' && (await step(document, job))) isMore = true;
      }
      return isMore;
    },
    list: async () => (await list()).map(({ name, value }) => toReplay(name, value as unknown as StoredReplay)),
  };
}

function toReplay(id: string, { status, redelivered, createdAt }: Omit<Replay, 'id'>): Replay {
  return { id, status, redelivered, createdAt };
}
