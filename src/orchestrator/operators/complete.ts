/** Gives a step its result by hand, in place of its operation. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json } from '../../engine/base/json/json.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { agentAlone } from '../../engine/ensemble/name.ts';
import { toNote } from '../../engine/ensemble/step-kind.ts';
import { childSignalName } from '../../engine/execution/child.ts';
import { type ExecutionCompletion, type ExecutionSummary, isFinal } from '../../engine/execution/execution.ts';
import type { AttachedEngine } from '../../engine/execution/execution-engine.port.ts';
import { endedBadly } from '../../engine/execution/execution-record.ts';
import type { StepRecord } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import { describeProblems } from '../../engine/json-schema/check-by-schema.ts';
import { compileJsonSchema } from '../../engine/json-schema/compile-json-schema.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';
import type { Mover } from '../change/move.ts';
import type { ExecutionService } from '../runs/execution-service.ts';
import { readStep } from '../runs/list-steps.ts';
import { newestOf } from '../runs/starts/find-first.ts';
import { type FoundStep, findStep } from './find-step.ts';
import { conflict, type OperatorOptions, readJsonOption, saidBy } from './operator-options.ts';
import type { Retry } from './retry.ts';

export interface CompleteDependencies {
  readonly executionService: Pick<ExecutionService, 'records'>;
  readonly storage: Pick<Storage, 'executions' | 'definitions'>;
  readonly engine: Pick<AttachedEngine, 'cancel'>;
  readonly clock: Clock;
  readonly retry: Retry;
  readonly mover: Pick<Mover, 'wake'>;
}

/** How often an execution is read again that ran on meanwhile. */
const MAX_TRIES = 3;
const MAX_COMPLETIONS = 100;

/** @returns a function that returns the id of the execution that continues */
export function createComplete({ executionService, storage, engine, clock, retry, mover }: CompleteDependencies) {
  const { records } = executionService;
  const { executions, definitions } = storage;

  const definitionOf = async ({ id, version, ensemble }: ExecutionSummary): Promise<EnsembleDefinition> => {
    if (agentAlone(ensemble) !== undefined)
      throw new OrchestratorError('INVALID_REQUEST', `execution ${id} ran an agent alone: it has no flow`);
    const stored = await definitions.get(version);
    if (stored) return stored.definition as unknown as EnsembleDefinition;
    throw new OrchestratorError('NOT_FOUND', `the definition ${version} of execution ${id} is not stored`);
  };

  /** @throws CONFLICT for a step that has a result */
  const refuseResult = async (summary: ExecutionSummary, { key }: FoundStep, isOver: boolean) => {
    const known = await readStep(records, clock, summary, key);
    if (!known || !(isOver ? ['completed', 'skipped'] : ['completed', 'skipped', 'failed']).includes(known.status))
      return;
    const help = isOver ? '; `executions.retry` with `from` runs it again' : '';
    throw conflict(summary, `step ${key} of execution ${summary.id} is ${known.status} already${help}`);
  };

  const recordOf = async ({ id }: ExecutionSummary, { key, step }: FoundStep, output: Json): Promise<Completed> => {
    const at = clock.now();
    if ('agent' in step) {
      const before = await records.executions.getStep(id, key);
      const { attempts = 1, startedAt = at } = before ?? {};
      const duration = Math.max(0, at - startedAt);
      const name = step.name ?? step.agent;
      return { record: { key, name, status: 'completed', attempts, startedAt, duration, output } };
    }
    const begun = await records.executions.getStep(id, `${key}.ensemble.begun`);
    const { id: childId } = (begun?.output ?? {}) as { readonly id?: string };
    const end = { signal: childSignalName(childId ?? ''), payload: { status: 'completed', output }, at };
    return { record: toNote(`${key}.ensemble`, { at, output: end }), childId };
  };

  return async (given: ExecutionSummary, named: string, value: unknown, options: OperatorOptions): Promise<string> => {
    if (value === undefined)
      throw new OrchestratorError('INVALID_REQUEST', '`output` is missing; null is a result, too');
    const output = readJsonOption(value, 'the output');
    let summary = given;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const definition = await definitionOf(summary);
      const found = findStep(definition, named, 'key');
      checkStep(definition, found, output);
      if (isFinal(summary.status)) {
        const newest = await newestOf(records, summary.id);
        if (newest !== summary.id || !endedBadly(summary))
          throw conflict(
            summary,
            newest === summary.id
              ? `execution ${summary.id} has completed`
              : `execution ${summary.id} was retried: execution ${newest} continues it`,
          );
        await refuseResult(summary, found, true);
        const { record } = await recordOf(summary, found, output);
        return (await retry(summary, options, record)).id;
      }
      const pinned = await executions.getPinned(summary.id);
      if (pinned?.isFree && pinned.version === summary.version) {
        await refuseResult(summary, found, false);
        const { record: step, childId } = await recordOf(summary, found, output);
        const before = pinned.handover ?? { waitingFor: [], waited: 0, recoveries: 0 };
        const done: ExecutionCompletion = { key: found.key, at: clock.now(), ...saidBy(options) };
        const completions = [...(before.completions ?? []), done].slice(-MAX_COMPLETIONS);
        const { version: from, epoch } = pinned;
        const handover = { ...before, completions };
        if (await executions.repin(summary.id, { epoch, from, to: from, handover, dueAt: done.at, step })) {
          if (childId !== undefined) await engine.cancel(childId);
          mover.wake();
          return summary.id;
        }
      }
      summary = (await records.executions.getStatus(summary.id)) ?? summary;
    }
    throw conflict(
      summary,
      `a process runs execution ${summary.id} at the moment: pause it, or wait until it waits; then give the step its result`,
    );
  };
}

interface Completed {
  readonly record: StepRecord;
  /** The child that the step has started. */
  readonly childId?: string | undefined;
}

/** @throws INVALID_REQUEST for a step that gets no result by hand, INVALID_INPUT for an output that does not fit */
function checkStep(definition: EnsembleDefinition, { key, step }: FoundStep, output: Json): void {
  if ('wait' in step)
    throw new OrchestratorError(
      'INVALID_REQUEST',
      `step ${key} waits for a signal: send it with \`executions.signal(id, '${step.wait}', payload)\``,
    );
  if ('ensemble' in step) return;
  if (!('agent' in step))
    throw new OrchestratorError(
      'INVALID_REQUEST',
      `step ${key} is not an agent or a child execution: it has no result of its own`,
    );
  const agent = (definition.agents ?? []).find(({ name }) => name === step.agent);
  const schema = step.output ?? agent?.output;
  if (schema === undefined) return;
  const checked = compileJsonSchema(schema as never, 'the output')(output);
  if ('value' in checked) return;
  const message = `the output does not fit the \`output\` of agent \`${step.agent}\`: ${describeProblems(checked.problems)}`;
  throw new OrchestratorError('INVALID_INPUT', message, { details: { issues: checked.problems } });
}
