/** Callers that wait for the end of an execution that is not active in this process. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { type Execution, isFinal } from '../../engine/execution/execution.ts';
import type { Storage } from '../../engine/storage/storage.port.ts';

export interface Waiters {
  /**
   * Resolves with the record when the execution has ended, with undefined when there is no such execution.
   * @param maxWaitMs - resolves with undefined too when the execution is suspended for longer than this
   */
  wait(id: string, maxWaitMs?: number): Promise<Execution | undefined>;
  /** An execution was suspended. @param ms - the time until it is due */
  notifyWait(id: string, ms: number): void;
  /** An execution has ended. */
  settle(id: string, record: Execution | undefined): void;
  /** Finds out which executions have ended in other processes. */
  look(): Promise<void>;
  readonly size: number;
  /** Rejects all waits with OVERLOADED: this process no longer looks for ends. */
  close(): void;
}

interface Waiter {
  readonly maxWaitMs: number;
  readonly resolve: (record: Execution | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export function createWaiters(storage: Storage): Waiters {
  const waiters = new Map<string, Waiter[]>();

  const settle = (id: string, record: Execution | undefined) => {
    const found = waiters.get(id);
    waiters.delete(id);
    for (const { resolve } of found ?? []) resolve(record);
  };

  return {
    async wait(id, maxWaitMs = Number.POSITIVE_INFINITY) {
      // Registered first, so that an end during the look is not missed.
      const ended = new Promise<Execution | undefined>((resolve, reject) => {
        const waiter = { maxWaitMs, resolve, reject };
        const others = waiters.get(id);
        if (others) others.push(waiter);
        else waiters.set(id, [waiter]);
      });
      try {
        const known = await storage.executions.getStatus(id);
        if (!known || isFinal(known.status)) settle(id, known && (await storage.executions.get(id)));
      } catch {
        // The next `look` finds the end, or this process reports it.
      }
      return ended;
    },
    notifyWait(id, ms) {
      const found = waiters.get(id);
      if (!found) return;
      const remaining = found.filter(({ maxWaitMs }) => maxWaitMs >= ms);
      if (remaining.length > 0) waiters.set(id, remaining);
      else waiters.delete(id);
      for (const { maxWaitMs, resolve } of found) if (maxWaitMs < ms) resolve(undefined);
    },
    settle,
    async look() {
      if (waiters.size === 0) return;
      for (const id of await storage.executions.findEnded([...waiters.keys()]))
        settle(id, await storage.executions.get(id));
    },
    get size() {
      return waiters.size;
    },
    close() {
      for (const [id, found] of [...waiters]) {
        waiters.delete(id);
        const error = new OrchestratorError(
          'OVERLOADED',
          `the orchestrator was closed; execution ${id} continues when another process resumes it`,
        );
        for (const { reject } of found) reject(error);
      }
    },
  };
}
