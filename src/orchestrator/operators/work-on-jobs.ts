/** Works on jobs, a short step at a time. A lease gives each job to one process; what a process that died had not stored is done again. */

import { isOrchestratorError } from '../../engine/base/errors.ts';
import { inPortions, type Portions } from '../../engine/base/portions.ts';
import { type Execution, isFinal } from '../../engine/execution/execution.ts';
import { endedBadly } from '../../engine/execution/execution-record.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { ExecutionQuery, Storage } from '../../engine/storage/storage.port.ts';
import type { MoveOne, Mover } from '../change/move.ts';
import type { Executions } from '../runs/executions.ts';
import type { AdvanceOptions, TimedTask } from '../timed/timed-work.ts';
import type { JobDocuments } from './job-documents.ts';
import type { JobFailure, StoredJob } from './jobs.ts';

export interface JobWorkDependencies {
  readonly storage: Pick<Storage, 'executions' | 'tokens' | 'capabilities'>;
  readonly stored: JobDocuments<StoredJob>;
  readonly executions: Pick<Executions, 'cancel' | 'retry' | 'pause' | 'resume' | 'complete'>;
  readonly mover: Pick<Mover, 'prepare'>;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  /** Does the task soon. */
  wake(): void;
}

/** What a step has done. */
interface Progress {
  /** Since the job was stored last. */
  outcomes: Outcome[];
  position: StoredJob['position'];
  isEnd: boolean;
  /** No more executions are accepted at the moment. */
  isHeldUp: boolean;
  error?: { readonly code: string; readonly message: string } | undefined;
}

type Outcome = 'changed' | 'unchanged' | JobFailure;

interface Step {
  readonly dependencies: JobWorkDependencies;
  readonly job: StoredJob;
  readonly progress: Progress;
  /** Those of the pages that are listed, and of each action. */
  readonly portions: Readonly<Record<'pages' | StoredJob['action'], Portions>>;
  /** Monotonic. */
  readonly endsAt: number;
  shouldContinue(): boolean;
  /** Stores what is deleted next, so that it is counted even if the process ends. @returns false if the job is no longer this process's */
  willDelete(ids: readonly string[]): Promise<boolean>;
}

const LEASE_MS = 15_000;
/** How long a step takes at most, about. Then its progress is stored. Several jobs share it, so that each has its turn soon. */
const STEP_MS = 500;
const MIN_STEP_MS = 50;
const PAGE = 100;
/** How many executions are changed at once, at most. Retries follow each other, so that a full queue stops them at one place. */
const AT_ONCE = { cancel: 10, retry: 1, move: 10, pause: 10, resume: 10, complete: 1, delete: PAGE };
const HELD_UP_MS = 1_000;
/** Errors of a start that is possible later. */
const HOLD_UP = ['OVERLOADED', 'CONCURRENT_LIMIT_EXCEEDED', 'RATE_LIMIT_EXCEEDED'] as const;
/** How often a process looks for jobs of processes that died. */
const LOOK_EVERY_MS = 10_000;
const MAX_FAILURES = 100;
/** The ids of stored tokens. A host gives ids of its own to the principals that it knows. */
const TOKEN_ID = /^tok_[0-9A-Z]{26}$/;

export function createJobTask(dependencies: JobWorkDependencies): TimedTask {
  const { storage, stored, clock, ids, logger, wake } = dependencies;
  const ofAction = Object.entries(AT_ONCE).map(([action, size]) => [action, inPortions(clock, size)]);
  const portions: Step['portions'] = { ...Object.fromEntries(ofAction), pages: inPortions(clock, PAGE) };
  let me: string | undefined;
  let isLooking = false;

  /** A job of a process that died is not due at an instant that anyone knows. A host that calls `runDue` finds it then. */
  const lookAgain = (shouldContinue: () => boolean) => {
    if (isLooking || !storage.capabilities.shared || !storage.capabilities.timers) return;
    isLooking = true;
    const onTimer = () => {
      isLooking = false;
      if (shouldContinue()) wake();
    };
    clock.setTimer(LOOK_EVERY_MS, onTimer, { background: true, sweep: true });
  };

  /** @returns when to look at the job again, Unix ms. Undefined: it has ended */
  const advance = async (id: string, stepMs: number, shouldContinue: () => boolean): Promise<number | undefined> => {
    const now = clock.now();
    me ??= ids.id('', now);
    const by = me;
    const lease = () => ({ by, until: clock.now() + LEASE_MS });
    const job = await stored.change(id, (one) => (isFree(one, by, now) ? { ...one, lease: lease() } : undefined));
    if (job?.status !== 'running') return undefined;
    if (job.lease?.by !== by) return job.lease?.until;
    const progress: Progress = { outcomes: [], position: job.position, isEnd: false, isHeldUp: false };
    const store = async (further?: Pick<StoredJob, 'deleting' | 'lease'>) => {
      const isMine = (one: StoredJob) => one.lease?.by === by;
      const after = await stored.change(id, (one) =>
        isMine(one) ? { ...withProgress(one, progress, clock), ...further } : undefined,
      );
      progress.outcomes = [];
      return after;
    };
    const willDelete = async (deleting: readonly string[]) => {
      const after = await store({ deleting, lease: lease() });
      return after?.status === 'running' && after.lease?.by === by;
    };
    await step({
      dependencies,
      job,
      progress,
      portions,
      endsAt: clock.monotonic() + stepMs,
      shouldContinue,
      willDelete,
    });
    const after = await store();
    if (after?.status !== 'running') return undefined;
    return clock.now() + (progress.isHeldUp ? HELD_UP_MS : 0);
  };

  return {
    async advance({ shouldContinue, waits }: AdvanceOptions) {
      let nextAt: number | undefined;
      if (!waits) lookAgain(shouldContinue);
      const running = [...(await stored.running())];
      const stepMs = Math.max(MIN_STEP_MS, STEP_MS / running.length);
      // Who cancels is in a hurry.
      const isCancel = ({ job }: (typeof running)[0]) => Number(job.action === 'cancel');
      for (const { id } of running.sort((a, b) => isCancel(b) - isCancel(a))) {
        if (!shouldContinue()) break;
        const at = await advance(id, stepMs, shouldContinue);
        if (at !== undefined) nextAt = Math.min(at, nextAt ?? at);
      }
      return { nextAt };
    },
    logFailure: (err, againInMs) => logger.warn({ err, againInMs }, 'jobs could not be continued'),
  };
}

function isFree({ status, lease }: StoredJob, by: string, now: number): boolean {
  return status === 'running' && (lease === undefined || lease.by === by || lease.until <= now);
}

async function step(one: Step): Promise<void> {
  const { dependencies, job, progress, portions, shouldContinue } = one;
  const { storage, clock } = dependencies;
  if (await isRevoked(job, storage)) {
    progress.error = { code: 'UNAUTHORIZED', message: 'the API token that created the job was revoked' };
    return;
  }
  for (const id of job.deleting ?? []) if (!(await storage.executions.getStatus(id))) progress.outcomes.push('changed');
  // A retry that the job starts is newer than the job, or than its first page.
  const { until = job.createdAt + 1, ...filter } = job.filter as unknown as ExecutionQuery;
  const mayGoOn = () => !progress.isEnd && !progress.isHeldUp && !progress.error && shouldContinue();
  while (mayGoOn() && clock.monotonic() < one.endsAt) {
    const before = progress.position && { before: progress.position };
    const query = { ...filter, until: Math.min(until, job.createdAt + 1), ...before };
    try {
      const page = await portions.pages.next(async (limit) => {
        const listed = await storage.executions.list({ ...query, limit });
        return { listed, isLast: listed.length < limit };
      });
      progress.isEnd = (await actOn(one, page.listed)) && page.isLast;
    } catch (error) {
      // More executions begin with `search` than a listing can have.
      if (!isOrchestratorError(error, 'INVALID_REQUEST')) throw error;
      progress.error = { code: error.code, message: error.message };
      break;
    }
  }
}

async function isRevoked({ principal }: StoredJob, { tokens }: Pick<Storage, 'tokens'>): Promise<boolean> {
  return principal !== undefined && TOKEN_ID.test(principal.tokenId) && !(await tokens.get(principal.tokenId));
}

/** @returns whether it came to each execution of the page */
async function actOn(one: Step, page: readonly Execution[]): Promise<boolean> {
  const { job, progress, portions, shouldContinue } = one;
  for (let at = 0; at < page.length; ) {
    const { some, outcomes } = await portions[job.action].next(async (size) => {
      const some = page.slice(at, at + size);
      return { some, outcomes: job.action === 'delete' ? await remove(one, some) : await actOnEach(one, some) };
    });
    progress.isHeldUp = outcomes.includes('held-up');
    progress.error = outcomes.map(beyondQuota).find(Boolean);
    if (progress.isHeldUp || progress.error) return false;
    for (const [nr, execution] of some.entries()) note(progress, execution, outcomes[nr] as Outcome);
    at += some.length;
    if (at < page.length && !shouldContinue()) return false;
  }
  return true;
}

const actOnEach = ({ dependencies, job }: Step, some: readonly Execution[]) => {
  const moveOne = dependencies.mover.prepare(job);
  return Promise.all(some.map((one) => act(dependencies, job, moveOne, one)));
};

async function remove(
  { dependencies, willDelete }: Step,
  some: readonly Execution[],
): Promise<(Outcome | 'held-up')[]> {
  const ids = some.filter(({ status }) => isFinal(status)).map(({ id }) => id);
  if (ids.length > 0 && !(await willDelete(ids))) return ['held-up'];
  await dependencies.storage.executions.delete(ids);
  return some.map(({ status }) => (isFinal(status) ? 'changed' : 'unchanged'));
}

/** The rest of the month would fail as this one did. */
function beyondQuota(outcome: Outcome | 'held-up'): Progress['error'] {
  if (typeof outcome === 'string' || outcome.code !== 'QUOTA_EXCEEDED') return undefined;
  const { code, message } = outcome;
  return { code, message };
}

function note(progress: Progress, { createdAt, id }: Execution, outcome: Outcome): void {
  progress.outcomes.push(outcome);
  progress.position = { createdAt, id };
}

async function act(
  { executions }: JobWorkDependencies,
  job: StoredJob,
  moveOne: MoveOne,
  record: Execution,
): Promise<Outcome | 'held-up'> {
  const { id: executionId } = record;
  const { action } = job;
  const by = { principal: job.principal, reason: job.reason };
  try {
    if (action === 'cancel') {
      if (isFinal(record.status)) return 'unchanged';
      await executions.cancel(executionId);
    } else if (action === 'pause' || action === 'resume') {
      if (isFinal(record.status) || (action === 'resume') !== (record.status === 'paused')) return 'unchanged';
      await executions[action](executionId);
    } else if (action === 'complete') {
      if (record.status === 'completed' || record.retriedBy !== undefined) return 'unchanged';
      await executions.complete(executionId, job.key ?? '', job.output, by);
    } else if (action === 'move') {
      if (isFinal(record.status)) return 'unchanged';
      const moved = await moveOne(executionId, record.ensemble);
      if (typeof moved !== 'string') return { executionId, code: 'CONFLICT', message: `${moved.at}: ${moved.reason}` };
      return moved === 'moved' ? 'changed' : 'unchanged';
    } else {
      // The retry of an execution is listed by itself.
      const { from, definition, input, newKeys } = job;
      const isAny = (from ?? definition) !== undefined && isFinal(record.status);
      if (!(isAny || endedBadly(record)) || record.retriedBy !== undefined) return 'unchanged';
      await executions.retry(executionId, { ...by, from, definition, input, newKeys });
    }
    return 'changed';
  } catch (error) {
    if (HOLD_UP.some((code) => isOrchestratorError(error, code))) return 'held-up';
    // It has ended, or was deleted, since it was listed.
    const isGone = isOrchestratorError(error, 'CONFLICT') || isOrchestratorError(error, 'NOT_FOUND');
    const tellsConflicts = action === 'complete' || (job.from ?? job.definition) !== undefined;
    if (isGone && !(tellsConflicts && isOrchestratorError(error, 'CONFLICT'))) return 'unchanged';
    const { code = 'INTERNAL', message = String(error) } = error as { code?: string; message?: string };
    return { executionId, code, message };
  }
}

function withProgress(job: StoredJob, { outcomes, position, isEnd, error }: Progress, clock: Clock): StoredJob {
  const failures = outcomes.filter((one) => typeof one === 'object');
  const countOf = (outcome: Outcome) => outcomes.filter((one) => one === outcome).length;
  const { lease: _lease, deleting: _deleting, ...rest } = job;
  const status = error ? 'failed' : isEnd && job.status === 'running' ? 'completed' : job.status;
  return {
    ...rest,
    ...(position && { position }),
    ...{ status, seen: job.seen + outcomes.length, changed: job.changed + countOf('changed') },
    ...{ unchanged: job.unchanged + countOf('unchanged'), failed: job.failed + failures.length },
    failures: [...job.failures, ...failures].slice(0, MAX_FAILURES),
    ...(error && { error }),
    ...(status !== 'running' && { finishedAt: job.finishedAt ?? clock.now() }),
  };
}
