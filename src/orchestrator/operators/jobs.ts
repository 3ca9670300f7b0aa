/** Jobs that cancel, retry, move or delete many executions, as the public `orchestrator.jobs`. Each step is stored, so any process continues them. */

import type { Principal } from '../../engine/access/token.ts';
import { invalid, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { oneOf, quoted } from '../../engine/base/wording.ts';
import { type ExecutionStatus, isFinal, JOB_ACTIONS, type JobAction } from '../../engine/execution/execution.ts';
import { endedBadly } from '../../engine/execution/execution-record.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { ExecutionPosition } from '../../engine/storage/storage.port.ts';
import { checkTarget } from '../change/move.ts';
import type { NameMap } from '../change/same-steps.ts';
import { type ExecutionSelection, readExecutionFilter } from '../runs/execution-filter.ts';
import type { JobDocuments } from './job-documents.ts';
import { checkOperatorOptions, type OperatorOptions, readJsonOption } from './operator-options.ts';

/** The executions that a job is for. */
export type JobFilter = ExecutionSelection;

export interface JobOptions extends OperatorOptions {
  /**
   * `cancel` ends the active executions, `retry` retries those that ended badly, `move` gives the active ones another definition, as
   * `executions.move` does, `complete` gives a step of the active ones and of those that ended badly its result, `delete` deletes the
   * records of those that have ended. The other executions of the filter stay as they are.
   */
  readonly action: JobAction;
  /** At least one filter. Executions that are accepted after the job was created don't count. */
  readonly filter: JobFilter;
  /** Who pays for the executions that `retry` starts. Without it, they are neither limited nor charged. */
  readonly principal?: Principal | undefined;
  /** With `move`: see `executions.move`. */
  readonly to?: string | undefined;
  readonly map?: NameMap | undefined;
  /** With `retry`: see `executions.retry`. With `from` or `definition`, those that completed are retried too. */
  readonly from?: string | undefined;
  readonly definition?: string | undefined;
  readonly input?: unknown | undefined;
  readonly newKeys?: boolean | undefined;
  /** With `complete`: see `executions.complete`. */
  readonly key?: string | undefined;
  readonly output?: unknown | undefined;
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
  /** With `retry`. */
  readonly from?: string;
  readonly definition?: string;
  readonly input?: Json;
  readonly newKeys?: boolean;
  /** With `complete`. */
  readonly key?: string;
  readonly output?: Json;
  readonly reason?: string;
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
  stop(id: string, options?: OperatorOptions): Promise<Job>;
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
      checkOperatorOptions(options, 'jobs.create', OPTIONS);
      const { action, principal, to, map, reason } = options;
      if (!JOB_ACTIONS.includes(action)) throw invalid(`\`action\` must be ${oneOf(JOB_ACTIONS)}`);
      refuseOtherOptions(action, options);
      const filter = readFilter(options);
      if (action === 'move') checkTarget(to, map);
      const more = readMore(options);
      const createdAt = clock.now();
      const id = ids.id('job_', createdAt);
      const job: StoredJob = {
        ...{ action, filter, ...(to !== undefined && { to }), ...(map && { map }), ...more },
        ...{ ...(principal && { principal }), ...(reason !== undefined && { reason }), status: 'running' },
        ...{ seen: 0, changed: 0, unchanged: 0, failed: 0, failures: [], createdAt },
      };
      await stored.create(id, job);
      wake();
      return toJob(id, job);
    },
    get: async (id) => orNotFound(id, await stored.change(String(id), () => undefined)),
    list: async () => (await stored.list()).map(({ id, job }) => toJob(id, job)).reverse(),
    async stop(id, options = {}) {
      checkOperatorOptions(options, 'jobs.stop');
      const stopped = (job: StoredJob): StoredJob | undefined =>
        job.status === 'running' ? { ...job, status: 'stopped', finishedAt: clock.now() } : undefined;
      return orNotFound(id, await stored.change(String(id), stopped));
    },
  };
}

/** @throws INVALID_REQUEST, TypeError */
function readFilter({ action, filter, from, definition }: JobOptions): JsonObject {
  refuseUnknownKeys(filter, FILTER_KEYS, 'jobs.create: filter');
  const { limit: _limit, ...query } = readExecutionFilter(filter).query;
  const { since, until, status } = query;
  if (since !== undefined && until !== undefined && since >= until)
    throw invalid('`filter.since` must be before `filter.until`');
  const isAny = from !== undefined || definition !== undefined;
  const problem = status && statusProblem(action, status, isAny);
  if (problem) throw invalid(problem);
  if (Object.keys(query).length > 0) return query as unknown as JsonObject;
  throw invalid('`filter` must have at least one filter; `{ "until": <now> }` means every execution');
}

/** The options of each action, besides those of all. */
const OF_ACTION: Partial<Record<JobAction, readonly (keyof JobOptions)[]>> = {
  move: ['to', 'map'],
  retry: ['from', 'definition', 'input', 'newKeys'],
  complete: ['key', 'output'],
};
const OPTIONS: readonly (keyof JobOptions)[] = ['action', 'filter', ...Object.values(OF_ACTION).flat()];

/** @throws INVALID_REQUEST */
function refuseOtherOptions(action: JobAction, options: JobOptions): void {
  for (const [other, names] of Object.entries(OF_ACTION))
    if (other !== action && names.some((name) => options[name] !== undefined))
      throw invalid(`${oneOf(names, 'and')} are for the action \`${other}\``);
}

/** What each execution is retried or completed with. @throws INVALID_REQUEST, INVALID_INPUT */
function readMore({ action, from, definition, input, newKeys, key, output }: JobOptions) {
  if (action === 'complete') {
    if (typeof key !== 'string' || key === '')
      throw invalid('`key` must be the key of a step, such as `flow[2]`, or its name');
    if (output === undefined) throw invalid('`output` is missing; null is a result, too');
    return { key, output: readJsonOption(output, '`output`') };
  }
  for (const [name, value] of Object.entries({ from, definition }))
    if (value !== undefined && (typeof value !== 'string' || value === '')) throw invalid(`\`${name}\` must be a text`);
  return {
    ...(from !== undefined && { from }),
    ...(definition !== undefined && { definition }),
    ...(input !== undefined && { input: readJsonOption(input, '`input`') }),
    ...(newKeys !== undefined && { newKeys }),
  };
}

/** A filter that no execution of the action can fit is a mistake. */
function statusProblem(action: JobAction, status: ExecutionStatus, isAny: boolean): string | undefined {
  const isOver = isFinal(status);
  if (action === 'complete' && status === 'completed') return '`complete` is for executions that have not completed';
  if ((action === 'cancel' || action === 'move' || action === 'pause') && isOver)
    return `\`${action}\` is for active executions, and \`${status}\` has ended`;
  if (action === 'resume' && status !== 'paused')
    return `\`resume\` is for executions that are paused, and \`${status}\` is not`;
  if (action === 'delete' && !isOver) return `\`delete\` is for executions that have ended, and \`${status}\` has not`;
  if (action === 'retry' && isAny && isOver) return undefined;
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
