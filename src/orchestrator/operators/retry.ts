/** Retries executions: with all that succeeded, or from a step on, and with another input or definition. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import { isPart } from '../../engine/ensemble/step-kind.ts';
import { isCompletedChild } from '../../engine/execution/child.ts';
import { type ExecutionRetry, type ExecutionSummary, isFinal } from '../../engine/execution/execution.ts';
import { endedBadly } from '../../engine/execution/execution-record.ts';
import { isTakenSignal, type NewExecution, type StepRecord } from '../../engine/execution/stored-execution.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { Storage, StoredDefinition } from '../../engine/storage/storage.port.ts';
import { isKeptRequest } from '../../engine/webhook/kept-request.ts';
import type { Mover } from '../change/move.ts';
import { differentStep, missingStep } from '../change/same-steps.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import type { ExecutionHandle } from '../runs/handles.ts';
import { readRecords } from '../runs/read-records.ts';
import type { RetryOptions } from '../runs/starts/execute-options.ts';
import { newestOf } from '../runs/starts/find-first.ts';
import { findStep, staysBefore } from './find-step.ts';
import { conflict, saidBy } from './operator-options.ts';

export interface RetryDependencies {
  readonly executionService: Pick<ExecutionService, 'records' | 'turns' | 'retry' | 'handleOf'>;
  readonly definitions: Pick<Storage['definitions'], 'get'>;
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedEnsemble | string>;
  readonly mover: Pick<Mover, 'targetOf'>;
}

/** @param completed - a step that gets this result in the retry */
export type Retry = (
  summary: ExecutionSummary,
  options: RetryOptions,
  completed?: StepRecord,
) => Promise<ExecutionHandle>;

/** @returns a function that retries the newest execution of a chain. `summary` is of any execution of the chain */
export function createRetry({ executionService, definitions, restore, mover }: RetryDependencies): Retry {
  const { records, turns } = executionService;

  const loadedOf = async ({ id, version, ensemble }: NewExecution): Promise<LoadedEnsemble> => {
    const stored = await definitions.get(version);
    const loaded = stored ? await restore(stored, ensemble) : `its definition ${version} is not stored`;
    if (typeof loaded !== 'string') return loaded;
    throw new OrchestratorError('NOT_CONFIGURED', `execution ${id} can't be retried here: ${loaded}`);
  };
  const succeeded = async (id: string, from: string | undefined): Promise<StepRecord[]> => {
    const steps: StepRecord[] = [];
    for await (const step of readRecords(records, turns, id))
      if (isKeptRequest(step) || (isResult(step) && (from === undefined || staysBefore(step.key, from))))
        steps.push(step);
    return steps;
  };

  return async (given, options, completed) => {
    const { from: named, definition, input } = options;
    const isOther = (named ?? definition) !== undefined;
    const id = await newestOf(records, given.id);
    const isGiven = id === given.id;
    if (completed && !isGiven) throw conflict(given, `execution ${given.id} was retried: execution ${id} continues it`);
    const summary = isGiven ? given : ((await records.executions.getStatus(id)) ?? given);
    // A repeated call finds the retry that it began before.
    const isWanted = isGiven && isFinal(summary.status) && isOther;
    if (!endedBadly(summary) && !isWanted) {
      if (isFinal(summary.status) || !isGiven || !isOther) return executionService.handleOf(id);
      throw conflict(summary, `execution ${id} has not ended: it is ${summary.status}; cancel it first`);
    }
    if (summary.trigger.dryRun)
      throw conflict(summary, `execution ${id} is a dry run: nothing of it happened; start the ensemble instead`);
    const accepted = await records.executions.getAccepted(id);
    if (!accepted) throw new OrchestratorError('NOT_FOUND', `there is no execution ${id}`);
    if (agentAlone(accepted.ensemble) !== undefined && isOther)
      throw new OrchestratorError('INVALID_REQUEST', `execution ${id} ran an agent alone: it has no flow`);
    const target =
      definition === undefined ? await loadedOf(accepted) : await mover.targetOf(accepted.ensemble, definition);
    const { stored } = target.compiled;
    const flow = stored.definition as unknown as EnsembleDefinition;
    const from = named === undefined ? undefined : findStep(flow, named, 'from').key;
    const steps = await succeeded(id, from);
    if (stored.version !== accepted.version) {
      const before = await definitions.get(accepted.version);
      refuseOtherSteps(summary, steps, before?.definition as unknown as EnsembleDefinition | undefined, flow);
    }
    const how: ExecutionRetry = {
      ...(from !== undefined && { from }),
      ...(stored.version !== accepted.version && { definition: accepted.version }),
      ...(input !== undefined && { input: true }),
      ...(completed && { completed: completed.key }),
    };
    const isSame = Object.keys(how).length === 0 && options.reason === undefined;
    const lineage = isSame ? undefined : { ...how, ...saidBy(options) };
    return executionService.retry(target, accepted, completed ? [...steps, completed] : steps, options, lineage);
  };
}

/** @throws CONFLICT */
function refuseOtherSteps(
  summary: ExecutionSummary,
  steps: readonly StepRecord[],
  before: EnsembleDefinition | undefined,
  after: EnsembleDefinition,
): void {
  const missing = missingStep(steps, after);
  const reason =
    missing !== undefined
      ? `the execution has a result at ${missing}, and the definition has no step there`
      : before && differentStep({ steps, waitingFor: [] }, before, after, {})?.reason;
  if (reason === undefined) return;
  throw conflict(summary, `${reason}; with \`from\`, the results from a step on are left out`);
}

/** Whether a retry keeps a record: results, parts of attempts, completed children and taken signals. Other decisions are made again. */
function isResult(step: StepRecord): boolean {
  if (step.note) return isPart(step) || isTakenSignal(step) || isCompletedChild(step);
  return step.status === 'completed' && step.retryAt === undefined;
}
