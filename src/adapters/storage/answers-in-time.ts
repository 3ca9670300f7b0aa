/** A storage whose every call answers: one that takes too long rejects, and may or may not have had its effect. */

import { OrchestratorError } from '../../engine/errors.ts';
import type { CommitEntry } from '../../engine/model/stored-execution.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { Storage } from '../../engine/ports/storage.ts';

const VERBS = [
  ...(['join', 'renew', 'leave', 'recover', 'listHeld', 'claim', 'survey', 'countQueued', 'requestCancel'] as const),
  ...(['findEnded', 'purge', 'getAccepted', 'getExecution', 'listExecutions', 'listSteps', 'listDeliveries'] as const),
  ...(['getStatus', 'getStep', 'skipRuns', 'listEndedWaits', 'findSignal'] as const),
  ...(['putSignal', 'listSignals', 'countDescendants', 'readSchedule', 'advanceSchedule'] as const),
  ...(['readState', 'putDefinition', 'getDefinition', 'close'] as const),
] as const;
const TOKEN_VERBS = ['put', 'findByDigest', 'list', 'delete', 'touch'] as const;

/**
 * The same storage; keyed values and objects are left as they are, since the steps that use them have a timeout of their own.
 * @param timeoutMs - how long a call may take that does not answer at once
 */
export function answersInTime(storage: Storage, clock: Clock, timeoutMs: number): Storage {
  const within = <T>(verb: string, answer: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const cancelTimer = clock.setTimer(timeoutMs, () => {
        const message = `the storage did not answer \`${verb}\` within ${timeoutMs} ms`;
        reject(new OrchestratorError('OVERLOADED', message, { retryable: true }));
      });
      answer.finally(cancelTimer).then(resolve, reject);
    });
  const timed = (target: object, verbs: readonly string[]): Record<string, unknown> => {
    const calls: Record<string, unknown> = {};
    for (const verb of verbs) {
      calls[verb] = (...args: unknown[]): unknown => {
        const answer = Reflect.apply(Reflect.get(target, verb), target, args);
        return answer instanceof Promise ? within(verb, answer) : answer;
      };
    }
    return calls;
  };
  const { capabilities, kv, objects } = storage;
  const tokens = timed(storage.tokens, TOKEN_VERBS);
  // Without a list of arguments: it is called for every step.
  const commit = (owner: string, batch: readonly CommitEntry[]) => {
    const answer = storage.commit(owner, batch);
    return answer instanceof Promise ? within('commit', answer) : answer;
  };
  const watch = storage.watch && { watch: (listener: () => void) => storage.watch?.(listener) };
  return { ...timed(storage, VERBS), ...watch, capabilities, kv, objects, tokens, commit } as unknown as Storage;
}
