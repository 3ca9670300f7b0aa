/** Jobs that send many deliveries again. Each step of a job is stored, so any process continues it. */

import { inPortions } from '../../engine/base/portions.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { DeliveryQuery, DeliveryStore, DocumentStore } from '../../engine/storage/storage.port.ts';
import { jobDocuments, type Named } from '../operators/job-documents.ts';

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
  /** The step that was begun when this was stored: its process, until when others leave it alone, and the deliveries with their attempts. */
  readonly step?: {
    readonly by: string;
    readonly until: number;
    readonly deliveries: readonly (readonly [id: string, attempts: number])[];
  };
}

const STEP = 500;
/** For how long other processes leave a step alone. */
const LEASE_MS = 15_000;

export function createReplays(
  documents: DocumentStore,
  deliveries: DeliveryStore,
  { clock, ids, shared }: { readonly clock: Clock; readonly ids: IdSource; readonly shared: boolean },
): Replays {
  const stored = jobDocuments<StoredReplay>(documents, clock, 'replay');
  const portions = inPortions(clock, STEP);
  /** The jobs whose last step failed in this process. */
  const failed = new Set<string>();
  let me: string | undefined;

  /** Sends what a process that died was about to send again, except what it has sent. */
  const finish = async (job: string, step: StoredReplay['step']): Promise<void> => {
    if (!step || (step.by === me && !failed.has(job))) return;
    for (const [id, attempts] of step.deliveries)
      if ((await deliveries.get(id))?.attempts === attempts) await deliveries.requeue([id], clock.now());
  };

  /**
   * Stores what it does before it does it, so each delivery is counted once.
   * @returns whether there is more to do
   */
  const advance = async ({ id, job }: Named<StoredReplay>, limit: number): Promise<boolean> => {
    const now = clock.now();
    me ??= ids.id('', now);
    if (shared && job.step && job.step.by !== me && job.step.until > now) return false;
    await finish(id, job.step);
    const { query, before } = job;
    const page = await deliveries.list({ ...query, ...(before !== undefined && { before }), limit });
    const again = page.filter(({ status }) => status !== 'pending');
    const { step: _step, ...rest } = { ...job, before: page.at(-1)?.id ?? before };
    const next = { ...rest, redelivered: job.redelivered + again.length } as StoredReplay;
    const step = {
      by: me,
      until: now + LEASE_MS,
      deliveries: again.map(({ id, attempts }) => [id, attempts] as const),
    };
    const isLast = page.length < limit;
    const begun = again.length > 0 ? { ...next, step } : next;
    const isSame = (one: StoredReplay) => one.before === job.before && one.redelivered === job.redelivered;
    if ((await stored.change(id, (one) => (isSame(one) ? begun : undefined))) !== begun) return true;
    failed.add(id);
    await deliveries.requeue(
      again.map((one) => one.id),
      now,
    );
    failed.delete(id);
    if (isLast) await stored.change(id, () => ({ ...next, status: 'completed' }));
    return !isLast;
  };

  return {
    async create(query) {
      const createdAt = clock.now();
      const id = ids.id('job_', createdAt);
      const job = { query, status: 'running', redelivered: 0, createdAt } as const;
      await stored.create(id, job);
      return toReplay(id, job);
    },
    async advance() {
      let isMore = false;
      for (const one of await stored.running()) if (await portions.next((limit) => advance(one, limit))) isMore = true;
      return isMore;
    },
    list: async () => (await stored.list()).map(({ id, job }) => toReplay(id, job)),
  };
}

function toReplay(id: string, { status, redelivered, createdAt }: Omit<Replay, 'id'>): Replay {
  return { id, status, redelivered, createdAt };
}
