/** How runs start executions of their own: the `ensemble` steps of the interpreter, over the engine of this process. */

import { acceptInput } from './engine/definition/accept-input.ts';
import { isOrchestratorError, OrchestratorError } from './engine/errors.ts';
import type { Json } from './engine/json.ts';
import { childSignalName, MOST_DEPTH, MOST_DESCENDANTS } from './engine/model/child.ts';
import { type ExecutionTrigger, isFinal } from './engine/model/execution.ts';
import type { IdSource } from './engine/model/id.ts';
import type { NewExecution } from './engine/model/stored-execution.ts';
import type { Children, NewChild, StartedChild } from './engine/ports/children.ts';
import type { Clock } from './engine/ports/clock.ts';
import type { AcceptedRun, Runnable, RunningEngine } from './engine/ports/execution-engine.ts';
import { JournalLostError } from './engine/ports/journal.ts';
import type { LoadedEnsemble } from './load-definitions.ts';
import { newExecution } from './new-execution.ts';

export interface ChildrenParts {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly engine: () => RunningEngine;
  /** @throws NOT_FOUND */
  find(ensemble: string): LoadedEnsemble;
  toRunnable(ensemble: LoadedEnsemble): Runnable;
}

/** Told by a signal alone. */
const ELSEWHERE: StartedChild = { finished: Promise.resolve(undefined) };

export function createChildren({ clock, ids, engine, find, toRunnable }: ChildrenParts): Children {
  /** What is known of a child that may have been started before; one that was deleted since has told its parent of its end. */
  const known = async ({ id, parent }: NewChild): Promise<StartedChild | undefined> => {
    const { storage } = engine();
    const record = await storage.getExecution(id, { agents: false });
    if (record) return isFinal(record.status) ? { finished: Promise.resolve(record) } : ELSEWHERE;
    const told = await storage.listSignals(parent.id, { name: childSignalName(id), after: 0, limit: 1 });
    return told.length > 0 ? ELSEWHERE : undefined;
  };

  const refuseMore = async ({ depth, rootId }: Required<Pick<ExecutionTrigger, 'depth' | 'rootId'>>) => {
    if (depth > MOST_DEPTH) {
      const message = `executions start each other over more than ${MOST_DEPTH} levels`;
      throw new OrchestratorError('CONFLICT', message, { details: { limit: MOST_DEPTH } });
    }
    if ((await engine().storage.countDescendants(rootId, MOST_DESCENDANTS)) >= MOST_DESCENDANTS) {
      const message = `execution ${rootId} has led to ${MOST_DESCENDANTS} others already`;
      throw new OrchestratorError('CONFLICT', message, { details: { limit: MOST_DESCENDANTS } });
    }
  };

  const accept = async (ensemble: LoadedEnsemble, child: NewChild): Promise<NewExecution> => {
    const { parent, key, detached } = child;
    const { compiled } = ensemble;
    const input: Json = acceptInput(compiled, child.input);
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
    };
    const beginning = { id: child.id, trigger, input, seed: ids.seed(), createdAt };
    // It is of no use behind the end of the one that waits for it.
    const deadlineAt = detached ? undefined : parent.deadlineAt;
    return newExecution(compiled, beginning, { timeoutMs: child.timeoutMs, deadlineAt });
  };

  return {
    newId: () => ids.id('exec_', clock.now()),
    async start(child) {
      const before = child.isRepeated ? await known(child) : undefined;
      if (before) return before;
      const ensemble = find(child.ensemble);
      const execution = await accept(ensemble, child);
      let run: AcceptedRun;
      try {
        run = await engine().begin(execution, toRunnable(ensemble), { mayQueue: true, isChild: true });
      } catch (error) {
        // A process that was taken for dead may have come to the same point.
        const other = isOrchestratorError(error, 'CONFLICT') ? await known(child) : undefined;
        if (other) return other;
        // It can't be stored, or the storage does not answer, which is no failure of the child.
        throw isOrchestratorError(error, 'INVALID_INPUT') ? error : new JournalLostError(error);
      }
      // One that is lost here is resumed, and its end is told by a signal.
      return { finished: run.finished.catch(() => undefined) };
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
