/** Starts and cancels child executions for `ensemble` steps, with the engine of this process. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import { childSignalName, MAX_DEPTH, MAX_DESCENDANTS } from '../../engine/execution/child.ts';
import type { Children, NewChild, StartedChild } from '../../engine/execution/children.port.ts';
import { type ExecutionTrigger, isFinal } from '../../engine/execution/execution.ts';
import {
  type AcceptedRun,
  type AttachedEngine,
  type LoadedDefinition,
  StaleDefinitionError,
} from '../../engine/execution/execution-engine.port.ts';
import type { IdSource } from '../../engine/execution/id.ts';
import { JournalLostError } from '../../engine/execution/journal.port.ts';
import { keyAt, withKeySeed } from '../../engine/execution/seed.ts';
import type { ExpectedDocument, NewExecution } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Tracing } from '../../engine/host/telemetry.port.ts';
import type { MaybePromise } from '../../engine/operation/operation.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';
import { traceStart } from '../telemetry.ts';
import type { NewExecutionId } from './starts/execution-ids.ts';
import { newExecution } from './starts/new-execution.ts';
import { readInput } from './starts/read-input.ts';
import { withCurrentDefinition } from './starts/with-current-definition.ts';

export interface ChildrenDependencies {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly newId: NewExecutionId;
  readonly engine: () => AttachedEngine;
  /** @throws NOT_FOUND, NOT_ACTIVE */
  find(ensemble: string): MaybePromise<LoadedEnsemble>;
  forget(document: ExpectedDocument): void;
  toLoadedDefinition(ensemble: LoadedEnsemble): LoadedDefinition;
  readonly tracing: Tracing | undefined;
}

/** A child whose end only a signal reports. */
const ELSEWHERE: StartedChild = { finished: Promise.resolve(undefined) };

/** The child can't be stored, or its limits refuse it. */
const REFUSALS = ['INVALID_INPUT', 'CONCURRENT_LIMIT_EXCEEDED', 'RATE_LIMIT_EXCEEDED'] as const;

export function createChildren(dependencies: ChildrenDependencies): Children {
  const { clock, ids, newId, engine, find, forget, toLoadedDefinition, tracing } = dependencies;

  /** Looks for a child that may have been started before. A child that was deleted since then has sent the signal of its end. */
  const known = async ({ id, parent }: NewChild): Promise<StartedChild | undefined> => {
    const { runRecords } = engine();
    const record = await runRecords.executions.get(id, { agents: false });
    if (record) return isFinal(record.status) ? { finished: Promise.resolve(record) } : ELSEWHERE;
    const ends = await runRecords.signals.list(parent.id, { name: childSignalName(id), after: 0, limit: 1 });
    return ends.length > 0 ? ELSEWHERE : undefined;
  };

  const refuseMore = async ({ depth, rootId }: Required<Pick<ExecutionTrigger, 'depth' | 'rootId'>>) => {
    if (depth > MAX_DEPTH) {
      const message = `child executions are nested more than ${MAX_DEPTH} levels deep`;
      throw new OrchestratorError('CONFLICT', message, { details: { limit: MAX_DEPTH } });
    }
    if ((await engine().runRecords.executions.countDescendants(rootId, MAX_DESCENDANTS)) >= MAX_DESCENDANTS) {
      const message = `execution ${rootId} already has ${MAX_DESCENDANTS} descendants`;
      throw new OrchestratorError('CONFLICT', message, { details: { limit: MAX_DESCENDANTS } });
    }
  };

  const accept = async (ensemble: LoadedEnsemble, child: NewChild): Promise<NewExecution> => {
    const { parent, key, detached, caller } = child;
    const { compiled } = ensemble;
    const input = await readInput(ensemble, child.input);
    const rootId = parent.trigger.rootId ?? parent.id;
    const depth = (parent.trigger.depth ?? 0) + 1;
    await refuseMore({ depth, rootId });
    const createdAt = clock.now();
    const trigger: ExecutionTrigger = {
      type: 'ensemble',
      parentId: parent.id,
      key,
      rootId,
      depth,
      ...(detached && { detached }),
      ...(parent.trigger.hops !== undefined && { hops: parent.trigger.hops }),
      ...(ensemble.mark && { traffic: ensemble.mark }),
    };
    // A retry of the parent starts another child, whose calls have the same keys.
    const seed = withKeySeed(ids.seed(), keyAt(parent.seed, key));
    const start = { executionId: child.id, ensemble: compiled.name, trigger, caller, isDetached: detached };
    const beginning = { id: child.id, trigger: traceStart(tracing, start), input, seed, createdAt };
    // A child that its parent waits for is not needed after the parent's end.
    const deadlineAt = detached ? undefined : parent.deadlineAt;
    return newExecution(compiled, beginning, { timeoutMs: child.timeoutMs, deadlineAt });
  };

  /** @throws JournalLostError if the storage does not answer, which is not a failure of the child */
  const findCurrent = async (name: string): Promise<LoadedEnsemble> => {
    try {
      return await find(name);
    } catch (error) {
      throw isOrchestratorError(error) && error.retryable ? new JournalLostError(error) : error;
    }
  };

  /** @throws StaleDefinitionError if the definition has changed since it was loaded */
  const begin = async (child: NewChild, current: LoadedEnsemble): Promise<StartedChild> => {
    const ensemble = current.traffic?.choose(child.input, child.id) ?? current;
    const execution = await accept(ensemble, child);
    const options = { mayQueue: true, isChild: true, expects: ensemble.expects };
    let run: AcceptedRun;
    try {
      run = await engine().begin(execution, toLoadedDefinition(ensemble), options);
    } catch (error) {
      if (error instanceof StaleDefinitionError) throw error;
      // A process that was considered dead may have started the same child.
      const other = isOrchestratorError(error, 'CONFLICT') ? await known(child) : undefined;
      if (other) return other;
      // Otherwise the storage does not answer, which is not a failure of the child.
      throw REFUSALS.some((code) => isOrchestratorError(error, code)) ? error : new JournalLostError(error);
    }
    // A child that is lost here is resumed later, and a signal reports its end.
    return { finished: run.finished.catch(() => undefined) };
  };

  return {
    newId: (ensemble) => newId(ensemble, clock.now()),
    async start(child) {
      const before = child.isRepeated ? await known(child) : undefined;
      if (before) return before;
      const current = () => findCurrent(child.ensemble);
      // Changes of the definition are no failure of the child.
      return withCurrentDefinition(current, forget, (found) => begin(child, found), Number.POSITIVE_INFINITY);
    },
    async cancel(id) {
      try {
        await engine().cancel(id);
      } catch (error) {
        throw isOrchestratorError(error) && !error.retryable ? error : new JournalLostError(error);
      }
    },
  };
}
