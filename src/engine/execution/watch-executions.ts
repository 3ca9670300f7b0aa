/** Tells the readers of executions when there may be more to read: one look at the storage an execution, however many they are. */

import { isFinal } from '../model/execution.ts';
import type { Clock } from '../ports/clock.ts';
import type { Storage } from '../ports/storage.ts';

/** Tells when something of an execution may have been stored here. */
export interface WakeSource {
  onExecution(id: string, listener: () => void): () => void;
}

export interface ExecutionWatch {
  follow(id: string): Follower;
}

/** Of one reader of an execution. */
export interface Follower {
  /**
   * Resolves when something may have been stored since it was resolved last: perhaps needlessly.
   * @param after - key of the last step that was read
   */
  wait(after: string | undefined): Promise<void>;
  /** Ends the wait at hand. */
  wake(): void;
  close(): void;
}

/** Other processes store without telling this one: look again after so long. */
const POLL_MS = 500;

/** Readers of one execution. */
interface Followed {
  readonly readers: Set<Reader>;
  readonly forget: () => void;
  /** Set while it is polled. */
  cancelPoll: (() => void) | undefined;
}

interface Reader {
  rung: boolean;
  after: string | undefined;
  resolve: (() => void) | undefined;
}

export function createExecutionWatch(parts: {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly events: WakeSource;
}): ExecutionWatch {
  const { storage, clock, events } = parts;
  const all = new Map<string, Followed>();

  const waiting = ({ readers }: Followed) => [...readers].filter(({ resolve }) => resolve !== undefined);

  const poll = (id: string, followed: Followed) => {
    // What a storage of this process alone stores, this process tells.
    if (followed.cancelPoll || !storage.capabilities.shared) return;
    followed.cancelPoll = clock.setTimer(POLL_MS, async () => {
      const found = await look(id, waiting(followed)).catch(() => waiting(followed));
      followed.cancelPoll = undefined;
      for (const reader of found) ring(reader);
      if (all.get(id) === followed && waiting(followed).length > 0) poll(id, followed);
    });
  };

  /** @returns those for whom there is more. Those that have read as far ask once. */
  const look = async (id: string, readers: readonly Reader[]): Promise<readonly Reader[]> => {
    if (readers.length === 0) return readers;
    const status = (await storage.getStatus(id))?.status;
    if (status === undefined || isFinal(status)) return readers;
    const found: Reader[] = [];
    for (const after of new Set(readers.map((reader) => reader.after))) {
      const [next] = await storage.listSteps(id, { after, limit: 1 });
      if (next && next.retryAt === undefined) found.push(...readers.filter((reader) => reader.after === after));
    }
    return found;
  };

  const begin = (id: string): Followed => {
    const readers = new Set<Reader>();
    const forget = events.onExecution(id, () => {
      for (const reader of readers) ring(reader);
    });
    const followed: Followed = { readers, forget, cancelPoll: undefined };
    all.set(id, followed);
    return followed;
  };

  return {
    follow(id) {
      const followed = all.get(id) ?? begin(id);
      const reader: Reader = { rung: false, after: undefined, resolve: undefined };
      followed.readers.add(reader);
      return {
        async wait(after) {
          if (!reader.rung) {
            reader.after = after;
            await new Promise<void>((resolve) => {
              reader.resolve = resolve;
              poll(id, followed);
            });
          }
          reader.rung = false;
        },
        wake: () => ring(reader),
        close() {
          followed.readers.delete(reader);
          if (followed.readers.size > 0 || all.get(id) !== followed) return;
          all.delete(id);
          followed.forget();
          followed.cancelPoll?.();
        },
      };
    },
  };
}

function ring(reader: Reader): void {
  reader.rung = true;
  reader.resolve?.();
  reader.resolve = undefined;
}
