/** The texts that models write now, for one reader of an execution's events. */

import type { OrchestratorEvent } from '../event.ts';

export type TextEvent = OrchestratorEvent<'agent.delta'>;

export interface LiveTexts {
  push(event: TextEvent): void;
  /** Removes and returns what was pushed: of each agent at most one event, so that a slow reader holds no more than the texts. */
  take(): readonly TextEvent[];
  /** Resolves at the next push, at once if there is something to take. */
  next(): Promise<void>;
}

export function createLiveTexts(): LiveTexts {
  const byKey = new Map<string, TextEvent>();
  let wake: (() => void) | undefined;
  return {
    push(event) {
      const { key, text } = event.data;
      const before = byKey.get(key);
      const data = before ? { ...event.data, text: before.data.text + text } : event.data;
      byKey.set(key, { ...event, data });
      wake?.();
    },
    take() {
      const taken = [...byKey.values()];
      byKey.clear();
      return taken;
    },
    async next() {
      if (byKey.size > 0) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    },
  };
}
