/**
 * The history: an append-only file to which every process writes what it is about to do and what it has done, each line with
 * one write. A written line survives a kill of its writer. Nothing is synced, because only a loss of power would lose it.
 */

import { openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** @returns a function that appends a line: what happened, and its details */
export function openHistory(path) {
  const file = openSync(path, 'a');
  return (what, about) => {
    writeSync(file, `${JSON.stringify({ at: now(), pid: process.pid, what, ...about })}\n`);
  };
}

/** Reads all lines, in the order in which they were written. */
export function readHistory(path) {
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

/**
 * Reads a history while it is written.
 * @returns `lines()`: all lines so far; `until()`: waits for a line
 */
export function followHistory(path) {
  const file = openSync(path, 'a+');
  const part = Buffer.alloc(1 << 20);
  const lines = [];
  let at = 0;
  let rest = Buffer.alloc(0);
  const read = () => {
    for (
      let count = readSync(file, part, 0, part.length, at);
      count > 0;
      count = readSync(file, part, 0, part.length, at)
    ) {
      at += count;
      const all = Buffer.concat([rest, part.subarray(0, count)]);
      const end = all.lastIndexOf(10) + 1;
      rest = all.subarray(end);
      for (const line of all.subarray(0, end).toString().split('\n')) if (line !== '') lines.push(JSON.parse(line));
    }
    return lines;
  };
  return {
    lines: read,
    /**
     * Waits until `find`, called with the lines from index `from` on, returns something other than undefined.
     * @throws Error when that takes longer than `timeoutMs`
     */
    async until(what, timeoutMs, from, find) {
      const end = performance.now() + timeoutMs;
      for (;;) {
        const found = find(read().slice(from));
        if (found !== undefined) return found;
        if (performance.now() > end) throw new Error(`not within ${timeoutMs} ms: ${what}`);
        await sleep(5);
      }
    },
  };
}

/** The machine's monotonic clock in ms: the same for all processes. */
export function now() {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}
