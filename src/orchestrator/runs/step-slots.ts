/** Slots that attempts of agents need. Those of this process that wait for the same limit are in a line, of which the first one asks. */

import type { ExecutionStore, StepOfExecution } from '../../engine/execution/execution-store.port.ts';
import { type FlowLimit, limitId } from '../../engine/execution/limits/flow-limit.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { StepSlots } from '../../engine/interpreter/run.ts';

/** How often a slot is asked for that another process may have given back. */
const ASK_MS = 250;

interface Waiting {
  readonly limit: FlowLimit;
  readonly step: StepOfExecution;
  isGone: boolean;
  take(giveBack: () => void): void;
}

interface Line {
  readonly waiting: Waiting[];
  /** Asks again at once. */
  wake(): void;
}

export function createStepSlots({
  storage,
  clock,
  logger,
}: {
  readonly storage: { readonly executions: Pick<ExecutionStore, 'takeSlot' | 'freeSlot'> };
  readonly clock: Clock;
  readonly logger: Logger;
}): StepSlots {
  const { executions } = storage;
  const lines = new Map<string, Line>();

  const giveBack = async (limit: FlowLimit, step: StepOfExecution) => {
    try {
      await executions.freeSlot(limit, step);
    } catch (err) {
      // It counts until the execution is not held any more.
      logger.warn({ err, executionId: step.executionId, key: step.key }, 'a slot of a limit could not be given back');
    }
    lines.get(limitId(limit))?.wake();
  };
  const ask = async ({ limit, step }: Waiting): Promise<boolean> => {
    try {
      return await executions.takeSlot(limit, step, clock.now());
    } catch (err) {
      logger.warn({ err, executionId: step.executionId, key: step.key }, 'a slot of a limit could not be asked for');
      return false;
    }
  };
  const pause = (line: Line) =>
    new Promise<void>((resolve) => {
      const cancel = clock.setTimer(ASK_MS, resolve);
      line.wake = () => {
        cancel();
        resolve();
      };
    });
  const serve = async (id: string, line: Line) => {
    for (let [first] = line.waiting; first; [first] = line.waiting) {
      const { limit, step } = first;
      let isWoken = false;
      line.wake = () => {
        isWoken = true;
      };
      const isTaken = !first.isGone && (await ask(first));
      if (isTaken || first.isGone) line.waiting.shift();
      if (isTaken && first.isGone) await giveBack(limit, step);
      else if (isTaken) first.take(() => void giveBack(limit, step));
      else if (!first.isGone && !isWoken) await pause(line);
    }
    lines.delete(id);
  };

  return {
    take: (limit, step, signal) =>
      new Promise((resolve, reject) => {
        const id = limitId(limit);
        const waiting: Waiting = { limit, step, isGone: signal.aborted, take: resolve };
        signal.addEventListener('abort', () => {
          waiting.isGone = true;
          reject(signal.reason);
          lines.get(id)?.wake();
        });
        const known = lines.get(id);
        if (known) known.waiting.push(waiting);
        else {
          const line: Line = { waiting: [waiting], wake() {} };
          lines.set(id, line);
          void serve(id, line);
        }
      }),
  };
}
