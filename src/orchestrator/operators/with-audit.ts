/** Adds the changes that people make of executions and jobs to the audit log. */

import type { AuditAction } from '../../engine/access/audit-entry.ts';
import { isOrchestratorError } from '../../engine/base/errors.ts';
import { copyJson, type JsonObject } from '../../engine/base/json/json.ts';
import { withoutUndefined } from '../../engine/base/without-undefined.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import type { Executions } from '../runs/executions.ts';
import { type Audit, type AuditDependencies, createAudit, type RecordChange } from './audit.ts';
import type { Jobs } from './jobs.ts';
import type { OperatorOptions } from './operator-options.ts';

/** Larger options and filters are left out of an entry, in bytes. */
const MAX_BYTES = 8 * 1024;

export interface Audited {
  readonly audit: Audit;
  readonly executions: Executions;
  readonly jobs: Jobs;
}

/** The same calls, each with an entry. Calls that only read are as they were. */
export function withAudit(dependencies: AuditDependencies, executions: Executions, jobs: Jobs): Audited {
  const { audit, record } = createAudit(dependencies);
  return { audit, executions: auditExecutions(executions, record), jobs: auditJobs(jobs, record) };
}

function auditExecutions(executions: Executions, record: RecordChange): Executions {
  const statusOf = ({ id, status }: Execution<unknown>): JsonObject => ({ executionId: id, status });
  const changeOne = async <T>(
    action: AuditAction,
    id: string,
    options: OperatorOptions = {},
    change: () => Promise<T>,
    after: (result: T) => JsonObject,
    more: object = {},
  ): Promise<T> => {
    const known = await executions.status(id).catch((thrown) => {
      if (!isOrchestratorError(thrown, 'NOT_FOUND')) throw thrown;
      return undefined;
    });
    // The change says what is wrong.
    if (!known) return change();
    const { id: executionId, status, ensemble } = known;
    const target = { executionId, ensemble };
    const describe = () => ({ action, target, before: { status }, ...optionsOf({ ...options, ...more }) });
    return record(describe, options, change, after);
  };
  const changeAll = <T extends object>(
    action: AuditAction,
    given: object,
    options: OperatorOptions,
    change: () => Promise<T>,
  ) => {
    const describe = () => ({ action, target: jsonOf(given), ...optionsOf(options) });
    return record(describe, options, change, (result) => result as unknown as JsonObject);
  };
  return {
    ...executions,
    cancel: (id, options) => changeOne('execution.cancel', id, options, () => executions.cancel(id, options), statusOf),
    pause: (id, options) => changeOne('execution.pause', id, options, () => executions.pause(id, options), statusOf),
    resume: (id, options) => changeOne('execution.resume', id, options, () => executions.resume(id, options), statusOf),
    delete: (id, options) =>
      changeOne(
        'execution.delete',
        id,
        options,
        () => executions.delete(id, options),
        ({ deleted }) => ({ deleted }),
      ),
    retry: (id, options) =>
      changeOne(
        'execution.retry',
        id,
        options,
        () => executions.retry(id, options),
        (run) => ({ executionId: run.id }),
      ),
    complete: (id, key, output, options) =>
      changeOne('execution.complete', id, options, () => executions.complete(id, key, output, options), statusOf, {
        key,
      }),
    pauseAll: (of, options = {}) => changeAll('executions.pause', of, options, () => executions.pauseAll(of, options)),
    resumeAll: (of, options = {}) =>
      changeAll('executions.resume', of, options, () => executions.resumeAll(of, options)),
    move(options) {
      if (options?.dryRun) return executions.move(options);
      const { to, map, dryRun: _none, principal, actor, reason, source, ...filter } = options ?? {};
      const describe = () => ({
        action: 'execution.move' as const,
        target: jsonOf(filter),
        ...optionsOf({ to, map }),
      });
      const change = () => executions.move(options);
      return record(describe, { principal, actor, reason, source }, change, ({ refusals: _long, ...counts }) => counts);
    },
  };
}

function auditJobs(jobs: Jobs, record: RecordChange): Jobs {
  return {
    ...jobs,
    create(options) {
      const describe = () => {
        const { filter, ...rest } = options;
        return { action: 'job.create' as const, target: { filter: jsonOf(filter) }, ...optionsOf(rest) };
      };
      const change = () => jobs.create(options);
      return record(describe, options, change, ({ id, status }) => ({ jobId: id, status }));
    },
    stop(id, options = {}) {
      const describe = () => ({ action: 'job.stop' as const, target: { jobId: String(id) } });
      return record(
        describe,
        options,
        () => jobs.stop(id, options),
        ({ status, changed }) => ({ status, changed }),
      );
    },
  };
}

/** What a call asked for, without who, why and from where, and without values: those are deleted with their execution. */
function optionsOf(given: object): { readonly options?: JsonObject } {
  const { principal: _by, actor: _name, reason: _why, source: _from, ...asked } = given as OperatorOptions;
  const { input, output: _value, ...named } = asked as { readonly input?: unknown; readonly output?: unknown };
  const options = jsonOf({ ...named, ...(input !== undefined && { input: true }) });
  return Object.keys(options).length === 0 ? {} : { options };
}

/** A value that is not JSON is refused by the change, and a large one is not read here. */
function jsonOf(given: unknown): JsonObject {
  try {
    return copyJson(withoutUndefined(given as object), MAX_BYTES) as JsonObject;
  } catch {
    return { omitted: true };
  }
}
