/**
 * What a storage that failed left undone: executions that this owner holds and no longer runs, and starts of which nobody
 * knows whether they were stored. Tried again until the storage answers, or the engine closes.
 */

import type { CommitEntry, ExecutionEnd } from '../../engine/model/stored-execution.ts';
import type { Clock } from '../../engine/ports/clock.ts';
import type { Logger } from '../../engine/ports/logger.ts';
import type { Storage } from '../../engine/ports/storage.ts';
import type { CommitWriter } from './commit-writer.ts';
import { mayPass } from './patience.ts';
import { createSetbacks } from './setbacks.ts';

export interface Orphans {
  /** Frees an execution, so that it is resumed. @param afterMs - not before so many ms */
  giveBack(owner: string, executionId: string, epoch: number, afterMs?: number): void;
  /**
   * A start of which nobody knows whether it was stored: its caller was told that it was not, so it is ended. A child's parent asks
   * for it again, so a child is freed.
   * @param owner - undefined for one that was to be queued
   */
  notConfirmed(owner: string | undefined, entry: CommitEntry): void;
  /** Tries no more. */
  close(): void;
}

const PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;

export function createOrphans(parts: {
  readonly storage: Storage;
  readonly writer: CommitWriter;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when an execution was freed. */
  onFreed(): void;
}): Orphans {
  const { storage, writer, clock, logger } = parts;
  // Made when it is needed: a Worker may make none outside of a request.
  let closing: AbortController | undefined;
  let closed = false;

  const setbacks = createSetbacks(clock, PAUSE_MS, LONGEST_PAUSE_MS);

  const keepTrying = async (executionId: string, work: () => unknown): Promise<void> => {
    closing ??= new AbortController();
    while (!closed) {
      try {
        await work();
        return;
      } catch (error) {
        const { pauseMs, isNew } = setbacks.add(executionId, error);
        const text = 'the storage does not store how an execution stands; it is tried again';
        if (isNew) logger.warn({ err: error, executionId }, text);
        // A storage that is away comes back for all at once.
        await clock.sleep(mayPass(error) ? PAUSE_MS : pauseMs, closing.signal).catch(() => undefined);
      }
    }
  };

  const giveBack = (owner: string, executionId: string, epoch: number, afterMs = 0) => {
    const entry = (): CommitEntry => {
      return { executionId, epoch, steps: [], release: { status: 'running', dueAt: clock.now() + afterMs } };
    };
    void keepTrying(executionId, async () => {
      await writer.write(owner, entry());
      parts.onFreed();
    });
  };

  return {
    giveBack,
    notConfirmed(owner, { executionId, epoch, start }) {
      if (start?.trigger.parentId !== undefined) {
        if (owner !== undefined) giveBack(owner, executionId, epoch);
        return;
      }
      const error = {
        code: 'OVERLOADED',
        message: 'the storage did not confirm the start, and the caller was told so',
      };
      const end = (): ExecutionEnd => {
        const finishedAt = clock.now();
        const duration = Math.max(0, finishedAt - (start?.createdAt ?? finishedAt));
        return { status: 'cancelled', output: null, error, finishedAt, duration, agents: 0 };
      };
      void keepTrying(executionId, () =>
        owner === undefined
          ? storage.requestCancel(executionId, clock.now(), end())
          : writer.write(owner, { executionId, epoch, steps: [], end: end() }),
      );
    },
    close() {
      closed = true;
      closing?.abort();
    },
  };
}
