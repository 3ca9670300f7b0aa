/** Jobs that cancel, retry, move or delete many executions, as the public `orchestrator.jobs`. Each step is stored, so any process continues them. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { oneOf, quoted } from '../../engine/base/wording.ts';
import { type ExecutionStatus, isFinal } from '../../engine/execution/execution.ts';
import { endedBadly } from '../../engine/execution/execution-record.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import type { Principal } from '../../engine/access/token.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { ExecutionPosition } from '../../engine/storage/storage.port.ts';
import { checkPrincipal } from '../options/options.ts';
import { type ExecutionSelection, readExecutionFilter } from '../runs/execution-filter.ts';
import { checkTarget } from '../change/move.ts';
import type { NameMap } from '../change/same-steps.ts';
import type { JobDocuments } from './job-documents.ts';

export type JobAction = 'cancel' | 'retry' | 'move' | 'delete';

/** The executions that a job is for. */
export type JobFilter = ExecutionSelection;

export interface JobOptions {
  /**
   * `cancel` ends the active executions, `retry` retries those that ended badly, `move` gives the active ones another definition, as
   * `executions.move` does, `delete` deletes the records of those that have ended. The other executions of the filter stay as they are.
   */
  readonly action: JobAction;
  /** At least one filter. Executions that are accepted after the job was created don't count. */
  readonly filter: JobFilter;
  /** Who pays for the executions that `retry` starts. Without it, they are neither limited nor charged. */
  readonly principal?: Principal | undefined;
  /** With `move`: see `executions.move`. */
  readonly to?: string | undefined;
  readonly map?: NameMap | undefined;
}

/** An execution for which a job failed. */
export interface JobFailure {
  readonly executionId: string;
  readonly code: string;
  readonly message: string;
}

/** Instants are Unix ms. */
export interface Job {
  readonly id: string;
  readonly action: JobAction;
  readonly filter: JsonObject;
  /** With `move`: the definition, and the names that have changed. */
  readonly to?: string;
  readonly map?: NameMap;
  /** Who created it, if a principal did. */
  readonly by?: { readonly tokenId: string; readonly name: string };
  /** `failed`: it can't continue, because of its filter, its quota or its token; `error` says why. What it has done stays. */
  readonly status: 'running' | 'completed' | 'stopped' | 'failed';
  /** How many executions it has come to so far: the sum of the three numbers below. */
  readonly seen: number;
  readonly changed: number;
  /** Those that the action is not for, such as an ended execution for `cancel`. */
  readonly unchanged: number;
  readonly failed: number;
  /** The first 100 failures. */
  readonly failures: readonly JobFailure[];
  readonly error?: { readonly code: string; readonly message: string };
  readonly createdAt: number;
  readonly finishedAt?: number;
}

/** A job is kept for 7 days after its last step. */
export interface Jobs {
  /**
   * Creates a job. This process works on it, or another one of the storage, also after a restart.
   * @throws INVALID_REQUEST for an invalid or empty filter; TypeError for unknown keys
   */
  create(options: JobOptions): Promise<Job>;
  /** @throws NOT_FOUND */
  get(id: string): Promise<Job>;
  /** Newest first. */
  list(): Promise<readonly Job[]>;
  /** Stops a job. What it has done stays. A job that is not running stays as it is. @throws NOT_FOUND */
  stop(id: string): Promise<Job>;
}

/** A job as it is stored. */
export interface StoredJob extends Omit<Job, 'id' | 'by'> {
  readonly principal?: Principal;
  /** The last execution that it came to. */
  readonly position?: ExecutionPosition;
  /** The executions that it was about to delete when this was stored, the last one included. */
  readonly deleting?: readonly string[];
  /** The process that works on it. After `until` (Unix ms), another one continues. */
  readonly lease?: { readonly by: string; readonly until: number };
}

const ACTIONS: readonly JobAction[] = ['cancel', 'retry', 'move', 'delete'];
const FILTER_KEYS = [
  'ensemble',
  'status',
  'parentId',
  'tag',
  'since',
  'until',
  'search',
  'errorCode',
  'unresolved',
] as const;

export interface JobsDependencies {
  readonly stored: JobDocuments<StoredJob>;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** A job is there for this process. */
  wake(): void;
}

export function createJobs({ stored, clock, ids, wake }: JobsDependencies): Jobs {
  const orNotFound = (id: string, job: StoredJob | undefined): Job => {
    if (job) return toJob(id, job);
    throw new OrchestratorError('NOT_FOUND', `there is no job ${quoted(String(id))}`);
  };
  return {
    async create(options) {
      refuseUnknownKeys(options, ['action', 'filter', 'principal', 'to', 'map'], 'jobs.create');
      const { action, principal, to, map } = options;
      if (!ACTIONS.includes(action)) throw invalid(`\`action\` must be ${oneOf(ACTIONS)}`);
      checkPrincipal(principal);
      const filter = readFilter(action, options.filter);
      if (action === 'move') checkTarget(to, map);
      else if (to !== undefined || map !== undefined) throw invalid('`to` and `map` are for the action `move`');
      const createdAt = clock.now();
      const id = ids.id('job_', createdAt);
      const job: StoredJob = {
        ...{ action, filter, ...(to !== undefined && { to }), ...(map && { map }) },
        ...{ ...(principal && { principal }), status: 'running' },
        ...{ seen: 0, changed: 0, unchanged: 0, failed: 0, failures: [], createdAt },
      };
      await stored.create(id, job);
      wake();
      return toJob(id, job);
    },
    get: async (id) => orNotFound(id, await stored.change(String(id), () => undefined)),
    list: async () => (await stored.list()).map(({ id, job }) => toJob(id, job)).reverse(),
    async stop(id) {
      const stopped = (job: StoredJob): StoredJob | undefined =>
        job.status === 'running' ? { ...job, status: 'stopped', finishedAt: clock.now() } : undefined;
      return orNotFound(id, await stored.change(String(id), stopped));
    },
  };
}

/** @throws INVALID_REQUEST, TypeError */
function readFilter(action: JobAction, filter: JobFilter): JsonObject {
  refuseUnknownKeys(filter, FILTER_KEYS, 'jobs.create: filter');
  const { limit: _limit, ...query } = readExecutionFilter(filter).query;
  const { since, until, status } = query;
  if (since !== undefined && until !== undefined && since >= until)
    throw invalid('`filter.since` must be before `filter.until`');
  const problem = status && statusProblem(action, status);
  if (problem) throw invalid(problem);
  if (Object.keys(query).length > 0) return query as unknown as JsonObject;
  throw invalid('`filter` must have at least one filter; `{ "until": <now> }` means every execution');
}

/** A filter that no execution of the action can fit is a mistake. */
function statusProblem(action: JobAction, status: ExecutionStatus): string | undefined {
  const isOver = isFinal(status);
  if ((action === 'cancel' || action === 'move') && isOver)
    return `\`${action}\` is for active executions, and \`${status}\` has ended`;
  if (action === 'delete' && !isOver) return `\`delete\` is for executions that have ended, and \`${status}\` has not`;
  if (action === 'retry' && !endedBadly({ status }))
    return `\`retry\` is for executions that ended badly, and \`${status}\` has not`;
  return undefined;
}

function toJob(
  id: string,
  { principal, position: _position, deleting: _deleting, lease: _lease, ...job }: StoredJob,
): Job {
  return { id, ...job, ...(principal && { by: { tokenId: principal.tokenId, name: principal.name } }) };
}

function invalid(message: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', message);
}
