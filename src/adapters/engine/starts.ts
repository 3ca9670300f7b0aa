/** How executions come into the storage: held by this owner and about to run, or queued for whoever has room. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/errors.ts';
import type { CommitEntry, NewExecution, StepRecord } from '../../engine/model/stored-execution.ts';
import type { MaybePromise } from '../../engine/ports/operation.ts';
import type { CommitResult, Storage, StoredDefinition } from '../../engine/ports/storage.ts';
import type { CommitWriter } from './commit-writer.ts';
import type { Orphans } from './orphans.ts';
import type { Owner } from './owner.ts';
import { isUnstorable, type Patience } from './patience.ts';

export interface Starts {
  /** Stores a definition, where this process has not done so yet, then goes on. */
  withDefinition<T>(definition: StoredDefinition, then: () => MaybePromise<T>): MaybePromise<T>;
  /** Stores an execution as held. @returns the owner that holds it */
  hold(owner: string, execution: NewExecution, steps: readonly StepRecord[]): MaybePromise<string>;
  /**
   * Stores an execution as queued.
   * @param always - also where the queue is full
   * @param repeatable - it may be stored already, and one of which nobody knows whether it is stays
   * @throws OVERLOADED when the queue is full
   */
  enqueue(
    execution: NewExecution,
    steps: readonly StepRecord[],
    how: { readonly always: boolean; readonly repeatable: boolean },
  ): Promise<void>;
}

export function createStarts(parts: {
  readonly storage: Storage;
  readonly patiently: Patience;
  readonly writer: CommitWriter;
  readonly owner: Owner;
  readonly orphans: Orphans;
  readonly queueLimit: number;
}): Starts {
  const { storage, patiently, writer, owner, orphans, queueLimit } = parts;
  const storedDefinitions = new Set<string>();
  /** Definitions that are being stored. */
  const underway = new Map<string, Promise<void>>();
  /** At most so many are queued, as far as this process knows; looked up when it comes to the limit. */
  let queued = 0;

  const write = (by: string | undefined, entry: CommitEntry): MaybePromise<CommitResult> => {
    const result = writer.write(by ?? '', entry);
    if (!(result instanceof Promise)) return result;
    return result.catch((thrown) => {
      // Whether it was stored is not known.
      if (isOrchestratorError(thrown) && thrown.retryable) orphans.notConfirmed(by, entry);
      if (!isUnstorable(thrown)) throw thrown;
      const message = `the execution could not be stored: ${messageOf(thrown)}`;
      throw new OrchestratorError('INVALID_INPUT', message, { cause: thrown });
    });
  };

  const holdAgain = async (result: CommitResult, by: string, entry: CommitEntry): Promise<string> => {
    if (result === 'fenced') await owner.doubt();
    const now = await owner.join();
    if (result === 'fenced' && now !== by && (await write(now, entry)) === 'stored') return now;
    throw new OrchestratorError('CONFLICT', `execution ${entry.executionId} was not accepted: its id is taken`);
  };

  return {
    withDefinition(definition, then) {
      const { version } = definition;
      if (storedDefinitions.has(version)) return then();
      const put = underway.get(version) ?? patiently(() => storage.putDefinition(definition));
      const stored = () => {
        underway.delete(version);
        storedDefinitions.add(version);
        return then();
      };
      if (!(put instanceof Promise)) return stored();
      // Those that come meanwhile wait for the same write; what a request of a Worker does is its own.
      if (storage.capabilities.sharedCommits) underway.set(version, put);
      return put.then(stored, (thrown) => {
        underway.delete(version);
        throw thrown;
      });
    },
    hold(by, execution, steps) {
      const entry: CommitEntry = { executionId: execution.id, epoch: 1, start: execution, steps };
      const check = (result: CommitResult) => (result === 'stored' ? by : holdAgain(result, by, entry));
      const result = write(by, entry);
      return result instanceof Promise ? result.then(check) : check(result);
    },
    async enqueue(execution, steps, { always, repeatable }) {
      if (queued >= queueLimit && !always) queued = await patiently(() => storage.countQueued(queueLimit));
      if (queued >= queueLimit && !always) {
        throw new OrchestratorError('OVERLOADED', `${queueLimit} executions are queued already; try again later`, {
          details: { limit: queueLimit },
          retryable: true,
        });
      }
      queued += 1;
      const { id: executionId, createdAt: dueAt } = execution;
      const release = { status: 'queued', dueAt } as const;
      const entry: CommitEntry = { executionId, epoch: 0, start: execution, steps, release };
      const result = await (repeatable ? writer.write('', entry) : write(undefined, entry));
      if (result !== 'stored' && !repeatable)
        throw new OrchestratorError('CONFLICT', `execution ${executionId} is stored already`);
    },
  };
}
