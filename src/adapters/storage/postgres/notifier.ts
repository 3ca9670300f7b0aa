/** Tells other processes that there is work: behind the write that made it, and seldom however much is written. */

/** A notification takes a lock of the whole server, so one stands for all that was written in so many milliseconds. */
const APART_MS = 5;

export interface Notifier {
  /** Sends at once when none was sent a moment ago, otherwise one soon; never fails. */
  notify(): void;
  /** Sends what waits to be sent. */
  flush(): Promise<void>;
}

export function createNotifier(send: () => Promise<unknown>): Notifier {
  let sentAt = Number.NEGATIVE_INFINITY;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let sending: Promise<unknown> = Promise.resolve();

  const sendNow = () => {
    timer = undefined;
    sentAt = performance.now();
    // Who is not told looks by itself before long.
    sending = send().catch(() => undefined);
  };

  return {
    notify() {
      if (timer !== undefined) return;
      const leftMs = sentAt + APART_MS - performance.now();
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
