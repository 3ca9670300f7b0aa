/** A storage whose every call answers: one that takes too long rejects, and may or may not have had its effect. */

import { OrchestratorError } from '../../engine/errors.ts';
import { entryBytes } from '../../engine/model/entry-bytes.ts';
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

/** How much longer a call may take that carries so much: 1 s for each whole MiB. */
export function transferMs(bytes: number): number {
  return Math.floor(bytes / 1_048_576) * 1000;
}

/**
 * The same storage; keyed values and objects are left as they are, since the steps that use them have a timeout of their own.
 * @param timeoutMs - how long a call may take that does not answer at once; a commit has 1 s more for each MiB
 */
export function answersInTime(storage: Storage, clock: Clock, timeoutMs: number): Storage {
  const within = <T>(verb: string, answer: Promise<T>, batch?: readonly CommitEntry[]): Promise<T> =>
    new Promise((resolve, reject) => {
      const refuse = (ms: number) => {
        const message = `the storage did not answer \`${verb}\` within ${ms} ms`;
        reject(new OrchestratorError('OVERLOADED', message, { details: { timeoutMs: ms }, retryable: true }));
      };
      const look = () => {
        // Its size is not asked for before it matters.
        const moreMs = batch ? transferMs(batch.reduce((bytes, entry) => bytes + entryBytes(entry), 0)) : 0;
        if (moreMs === 0) refuse(timeoutMs);
        else cancelTimer = clock.setTimer(moreMs, () => refuse(timeoutMs + moreMs));
      };
      let cancelTimer = clock.setTimer(timeoutMs, look);
      answer.finally(() => cancelTimer()).then(resolve, reject);
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
    return answer instanceof Promise ? within('commit', answer, batch) : answer;
  };
  const watch = storage.watch && { watch: (listener: () => void) => storage.watch?.(listener) };
  return { ...timed(storage, VERBS), ...watch, capabilities, kv, objects, tokens, commit } as unknown as Storage;
}
