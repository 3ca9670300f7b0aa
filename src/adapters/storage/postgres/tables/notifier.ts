/** Notifies other processes of work, after the write that made it, and rarely even when much is written. */

/** A notification takes a lock of the whole server, so one notification serves all writes of this time. */
const MIN_INTERVAL_MS = 5;

export interface Notifier {
  /** Sends a notification at once, or soon if one was just sent. Never fails. */
  notify(): void;
  /** Sends a waiting notification now. */
  flush(): Promise<void>;
}

export function createNotifier(send: () => Promise<unknown>): Notifier {
  let sentAt = Number.NEGATIVE_INFINITY;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let sending: Promise<unknown> = Promise.resolve();

  const sendNow = () => {
    timer = undefined;
    sentAt = performance.now();
    // A process that misses the notification finds the work at its next poll.
    sending = send().catch(() => undefined);
  };

  return {
    notify() {
      if (timer !== undefined) return;
      const leftMs = sentAt + MIN_INTERVAL_MS - performance.now();
      if (leftMs <= 0) sendNow();
      else timer = setTimeout(sendNow, leftMs);
    },
    async flush() {
      if (timer !== undefined) {
        clearTimeout(timer);
        sendNow();
      }
      await sending;
    },
  };
}
