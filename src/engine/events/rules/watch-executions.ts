/** Wakes the readers of executions when there may be more to read. All readers of one execution share one poll of the storage. */

import { isFinal } from '../../execution/execution.ts';
import type { Clock } from '../../host/clock.port.ts';
import type { RecordReader } from '../../storage/storage.port.ts';

/** Knows when this process has stored something. */
export interface WakeSource {
  onStored(id: string, listener: () => void): () => void;
}

export interface ExecutionWatch {
  follow(id: string): Follower;
}

/** The watch of one reader of one execution. */
export interface Follower {
  /**
   * Resolves when something may have been stored since the last call; it may resolve although nothing was.
   * @param after - the key of the last record that was read
   */
  wait(after: string | undefined): Promise<void>;
  /** Ends the current wait. */
  wake(): void;
  close(): void;
}

/** Interval between polls, for what other processes store. */
const POLL_MS = 500;

/** The readers of one execution. */
interface Followed {
  readonly readers: Set<Reader>;
  readonly forget: () => void;
  /** Set while the execution is polled. */
  cancelPoll: (() => void) | undefined;
}

interface Reader {
  isWoken: boolean;
  after: string | undefined;
  resolve: (() => void) | undefined;
}

export function createExecutionWatch(dependencies: {
  readonly records: RecordReader;
  /** Whether other processes run the same executions. */
  readonly isShared: boolean;
  readonly clock: Clock;
  readonly events: WakeSource;
}): ExecutionWatch {
  const { records, isShared, clock, events } = dependencies;
  const all = new Map<string, Followed>();

  const waiting = ({ readers }: Followed) => [...readers].filter(({ resolve }) => resolve !== undefined);

  const poll = (id: string, followed: Followed) => {
    // With a storage that no other process shares, the events of this process are enough.
    if (followed.cancelPoll || !isShared) return;
    const onTimer = async () => {
      const found = await look(id, waiting(followed)).catch(() => waiting(followed));
      followed.cancelPoll = undefined;
      for (const reader of found) wakeReader(reader);
      if (all.get(id) === followed && waiting(followed).length > 0) poll(id, followed);
    };
    followed.cancelPoll = clock.setTimer(POLL_MS, onTimer, { sweep: true });
  };

  /** @returns the readers with more to read. Readers at the same key share one query. */
  const look = async (id: string, readers: readonly Reader[]): Promise<readonly Reader[]> => {
    if (readers.length === 0) return readers;
    const status = (await records.executions.getStatus(id))?.status;
    if (status === undefined || isFinal(status)) return readers;
    const found: Reader[] = [];
    for (const after of new Set(readers.map((reader) => reader.after))) {
      const [next] = await records.executions.listSteps(id, { after, limit: 1, notes: true });
      if (next) found.push(...readers.filter((reader) => reader.after === after));
    }
    return found;
  };

  const begin = (id: string): Followed => {
    const readers = new Set<Reader>();
    const forget = events.onStored(id, () => {
      for (const reader of readers) wakeReader(reader);
    });
    const followed: Followed = { readers, forget, cancelPoll: undefined };
    all.set(id, followed);
    return followed;
  };

  return {
    follow(id) {
      const followed = all.get(id) ?? begin(id);
      const reader: Reader = { isWoken: false, after: undefined, resolve: undefined };
      followed.readers.add(reader);
      return {
        async wait(after) {
          if (!reader.isWoken) {
            reader.after = after;
            await new Promise<void>((resolve) => {
              reader.resolve = resolve;
              poll(id, followed);
            });
          }
          reader.isWoken = false;
        },
        wake: () => wakeReader(reader),
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

function wakeReader(reader: Reader): void {
  reader.isWoken = true;
  reader.resolve?.();
  reader.resolve = undefined;
}
