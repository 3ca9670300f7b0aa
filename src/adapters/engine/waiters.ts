/** Those who wait for the end of an execution that this process does not run at the moment. */

import { OrchestratorError } from '../../engine/errors.ts';
import { type Execution, isFinal } from '../../engine/model/execution.ts';
import type { Storage } from '../../engine/ports/storage.ts';

export interface Waiters {
  /**
   * The record once it has ended; undefined when there is none.
   * @param longestWaitMs - undefined is given too when it is told that it waits for longer
   */
  wait(id: string, longestWaitMs?: number): Promise<Execution | undefined>;
  /** Tells that one goes on after so many ms. */
  tellWait(id: string, ms: number): void;
  /** Tells that one has ended. */
  settle(id: string, record: Execution | undefined): void;
  /** Looks which of them have ended elsewhere. */
  look(): Promise<void>;
  readonly size: number;
  /** Nobody looks any more. */
  close(): void;
}

interface Waiter {
  readonly longestWaitMs: number;
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
    async wait(id, longestWaitMs = Number.POSITIVE_INFINITY) {
      // Registered first: an end between the look and the registration would be missed.
      const ended = new Promise<Execution | undefined>((resolve, reject) => {
        const waiter = { longestWaitMs, resolve, reject };
        const others = waiters.get(id);
        if (others) others.push(waiter);
        else waiters.set(id, [waiter]);
      });
      try {
        const known = await storage.getStatus(id);
        if (!known || isFinal(known.status)) settle(id, known && (await storage.getExecution(id)));
      } catch {
        // It is looked at again, and whoever ends it here tells.
      }
      return ended;
    },
    tellWait(id, ms) {
      const found = waiters.get(id);
      if (!found) return;
      const patient = found.filter(({ longestWaitMs }) => longestWaitMs >= ms);
      if (patient.length > 0) waiters.set(id, patient);
      else waiters.delete(id);
      for (const { longestWaitMs, resolve } of found) if (longestWaitMs < ms) resolve(undefined);
    },
    settle,
    async look() {
      if (waiters.size === 0) return;
      for (const id of await storage.findEnded([...waiters.keys()])) settle(id, await storage.getExecution(id));
    },
    get size() {
      return waiters.size;
    },
    close() {
      for (const [id, found] of [...waiters]) {
        waiters.delete(id);
        const error = new OrchestratorError(
          'OVERLOADED',
          `the orchestrator was closed; execution ${id} goes on when a process takes it up again`,
        );
        for (const { reject } of found) reject(error);
      }
    },
  };
}
