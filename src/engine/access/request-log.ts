/** The log of the requests in a sliding window: what is counted, when it leaves the window, and the log as text. */

/** A number of requests within a time. */
export interface RateWindow {
  /** Who sends the requests, such as `token:tok_01...` or `ip:192.0.2.1`. Windows of another length are counted apart. */
  readonly key: string;
  /** How many requests every span of `windowMs` may have. */
  readonly limit: number;
  readonly windowMs: number;
}

/** What is used of a window. */
export interface RateUse {
  /** How many requests the window has now. It can be more than the limit if the limit was lowered. */
  readonly used: number;
  /**
   * The instant (Unix ms, after `now`) at which the window has place for another request, if it is full now. Otherwise the instant at
   * which its oldest request leaves it.
   */
  readonly resetAt: number;
}

export interface RateAnswer {
  /** Whether the request was counted, in every window. False if one of them was full: then it is counted in none. */
  readonly taken: boolean;
  /** In the order of the windows, with this request if it was counted. */
  readonly uses: readonly RateUse[];
}

/** Up to this limit, each request is logged with its instant. Above it, with the end of its sixtieth of the window. */
const MAX_EXACT = 1_000;
const PARTS = 60;

/** Requests of one window, oldest first. The first `from` entries have left the window. */
export interface RequestLog {
  readonly instants: number[];
  /** How many requests have the instant. */
  readonly counts: number[];
  from: number;
  total: number;
  /** Whether instants were moved, because a clock was set back. A store keeps this, also for a request that is refused. */
  moved: boolean;
}

const TOKEN = 'token:';

/** The key under which the requests of a token are counted. */
export function tokenKey(tokenId: string): string {
  return `${TOKEN}${tokenId}`;
}

/** Whether a key, or the name of its log, is that of a token. Others are those of addresses, of which anyone can have many. */
export function isTokenKey(key: string): boolean {
  return key.startsWith(TOKEN);
}

/** Windows of another length are logged apart. */
export function logKeyOf({ key, windowMs }: RateWindow): string {
  return `${key} ${windowMs}`;
}

export function newLog(): RequestLog {
  return { instants: [], counts: [], from: 0, total: 0, moved: false };
}

/** Counts one request in all logs, or in none if one of the windows is full. */
export function takeFromLogs(windows: readonly RateWindow[], logs: readonly RequestLog[], now: number): RateAnswer {
  let taken = true;
  for (let i = 0; i < windows.length; i++) {
    const { limit, windowMs } = windows[i] as RateWindow;
    const log = logs[i] as RequestLog;
    forget(log, windowMs, now);
    if (log.total >= limit) taken = false;
  }
  if (taken) for (let i = 0; i < windows.length; i++) add(logs[i] as RequestLog, windows[i] as RateWindow, now);
  return { taken, uses: usesOf(windows, logs, now) };
}

/** What is used of each window. Requests that have left the window are removed from the logs. */
export function usesOf(windows: readonly RateWindow[], logs: readonly RequestLog[], now: number): readonly RateUse[] {
  return windows.map((window, i) => {
    const log = logs[i] as RequestLog;
    forget(log, window.windowMs, now);
    return { used: log.total, resetAt: resetOf(log, window, now) };
  });
}

/** Unix ms from which on the log counts nothing. */
export function logEndsAt({ instants }: RequestLog, { windowMs }: RateWindow): number {
  return (instants.at(-1) ?? 0) + windowMs;
}

function forget(log: RequestLog, windowMs: number, now: number): void {
  const { instants, counts } = log;
  // After a clock was set back, a request counts for one more window at most, and never less.
  for (let i = instants.length - 1; i >= log.from && (instants[i] as number) > now + windowMs; i--) {
    instants[i] = now + windowMs;
    log.moved = true;
  }
  while (log.from < instants.length && (instants[log.from] as number) + windowMs <= now) {
    log.total -= counts[log.from] as number;
    log.from += 1;
  }
  // The removed entries are dropped together, so that an entry costs the same however long the log is.
  if (log.from * 2 <= instants.length) return;
  instants.splice(0, log.from);
  counts.splice(0, log.from);
  log.from = 0;
}

function add(log: RequestLog, { limit, windowMs }: RateWindow, now: number): void {
  const { instants, counts } = log;
  const part = Math.max(1, Math.floor(windowMs / PARTS));
  const instant = limit > MAX_EXACT ? Math.ceil(now / part) * part : now;
  log.total += 1;
  const last = instants.at(-1);
  if (last !== undefined && instants.length > log.from && last >= instant) {
    (counts[counts.length - 1] as number) += 1;
    return;
  }
  instants.push(instant);
  counts.push(1);
}

function resetOf({ instants, counts, from, total }: RequestLog, { limit, windowMs }: RateWindow, now: number): number {
  let left = total;
  for (let i = from; i < instants.length; i++) {
    left -= counts[i] as number;
    if (left < limit) return (instants[i] as number) + windowMs;
  }
  return now + windowMs;
}

/** The log as text: the instants as differences in base 36, with `*` and the count if it is not 1. */
export function toLogText({ instants, counts, from }: RequestLog): string {
  const parts: string[] = [];
  let last = 0;
  for (let i = from; i < instants.length; i++) {
    const instant = instants[i] as number;
    const count = counts[i] as number;
    parts.push((instant - last).toString(36) + (count === 1 ? '' : `*${count.toString(36)}`));
    last = instant;
  }
  return parts.join(' ');
}

/** Reads {@link toLogText}. Text of another form is an empty log. */
export function readLogText(text: string): RequestLog {
  const log = newLog();
  if (text === '') return log;
  let last = 0;
  for (const part of text.split(' ')) {
    const [difference = '', count = '1'] = part.split('*');
    last += Number.parseInt(difference, 36);
    const requests = Number.parseInt(count, 36);
    if (!Number.isSafeInteger(last) || !Number.isSafeInteger(requests)) return newLog();
    log.instants.push(last);
    log.counts.push(requests);
    log.total += requests;
  }
  return log;
}
