/**
 * Jobs as documents: those that are running by themselves, so that a look at them costs the same however many have ended. They are kept
 * for 7 days after their last change.
 */

import type { JsonObject } from '../../engine/base/json/json.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { DocumentStore, StoredDocument } from '../../engine/storage/storage.port.ts';
import { allDocuments } from '../all-documents.ts';

interface WithStatus {
  /** `running`, or any other text if it has ended. */
  readonly status: string;
}

export interface Named<Job> {
  readonly id: string;
  readonly job: Job;
}

export interface JobDocuments<Job extends WithStatus> {
  create(id: string, job: Job): Promise<unknown>;
  /** All jobs, oldest first. */
  list(): Promise<readonly Named<Job>[]>;
  /** Those that are running, oldest first. */
  running(): Promise<readonly Named<Job>[]>;
  /**
   * Changes a job, however many others change it too.
   * @param next - undefined: nothing changes
   * @returns the job after that, which is what `next` returned if it was stored; undefined if it is unknown
   */
  change(id: string, next: (job: Job) => Job | undefined): Promise<Job | undefined>;
}

const KEPT_MS = 7 * 86_400_000;

/** @param kind - of the documents of jobs that have ended */
export function jobDocuments<Job extends WithStatus>(
  documents: DocumentStore,
  clock: Clock,
  kind: string,
): JobDocuments<Job> {
  const [RUNNING, ENDED] = [`running-${kind}`, kind];
  const jobOf = ({ value }: StoredDocument) => value as unknown as Job;
  const read = async (from: string, id: string) => documents.read(from, id, clock.now());
  const write = async (to: string, id: string, expectedVersion: number, job: Job) => {
    const now = clock.now();
    const document = { value: job as unknown as JsonObject, tag: '', updatedAt: now, expiresAt: now + KEPT_MS };
    return documents.write(to, id, { expectedVersion, document, now });
  };
  const all = async (from: string) =>
    (await allDocuments(documents, from, clock)).map((document) => ({ id: document.name, job: jobOf(document) }));
  /** Puts a job among those that have ended. If the process dies in between, it is in both places, and the next change completes this. */
  const putAway = async (id: string, job: Job, version: number) => {
    await write(ENDED, id, (await read(ENDED, id))?.version ?? 0, job);
    await documents.write(RUNNING, id, { expectedVersion: version, now: clock.now() });
  };
  return {
    create: (id, job) => write(RUNNING, id, 0, job),
    async list() {
      const running = await all(RUNNING);
      const known = new Set(running.map(({ id }) => id));
      const ended = (await all(ENDED)).filter(({ id }) => !known.has(id));
      return [...running, ...ended].sort((a, b) => (a.id < b.id ? -1 : 1));
    },
    running: () => all(RUNNING),
    async change(id, next) {
      for (;;) {
        const running = await read(RUNNING, id);
        const found = running ?? (await read(ENDED, id));
        if (!found) return undefined;
        const changed = next(jobOf(found));
        if (changed && !(await write(running ? RUNNING : ENDED, id, found.version, changed))) continue;
        const job = changed ?? jobOf(found);
        if (running && job.status !== 'running')
          await putAway(id, job, running.version + Number(changed !== undefined));
        return job;
      }
    },
  };
}
