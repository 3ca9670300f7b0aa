/** What a waiting execution waits for, in words. */

import { type Execution, isAtStep, type PendingWait } from '../../engine/execution/execution.ts';
import { count } from '../terminal/text.ts';
import { formatDistance, formatInstant } from '../terminal/times.ts';

/** How many waits are shown one by one. */
const SHOWN_WAITS = 20;

/** A server of an earlier version does not say what an execution waits for. */
export function waitsOf({ waitingFor = [] }: Partial<Pick<Execution<unknown>, 'waitingFor'>>): readonly PendingWait[] {
  return waitingFor;
}

/** Such as `the signal approved`. */
export function describeAim({ kind, name = '', key, executionId, position = 1, starts = 1 }: PendingWait): string {
  switch (kind) {
    case 'signal':
      return `the signal ${name}`;
    case 'retry':
      return `the next attempt of ${name}`;
    case 'limit':
      return `a slot of ${name}${key === '' ? '' : ` for ${key}`}, at position ${position}`;
    case 'debounce':
    case 'batch':
      return `more starts${key === '' ? '' : ` for ${key}`} (${kind}), after ${starts}`;
    case 'child':
      return `the end of ${name}${executionId === undefined ? '' : ` (${executionId})`}`;
    default:
      return 'the end of a sleep';
  }
}

/** Such as `since 2026-11-20 16:30:24, until 2026-11-21 16:30:24`. */
export function describeTimes({ since, until }: PendingWait): string {
  return `since ${formatInstant(since)}${until === undefined ? '' : `, until ${formatInstant(until)}`}`;
}

/** One line for each wait. @param now - Unix ms */
export function describeWaits(record: Execution<unknown>, now: number): string[] {
  const waits = waitsOf(record);
  const lines = waits.slice(0, SHOWN_WAITS).map((wait) => {
    const left = wait.until === undefined ? '' : ` (${formatDistance(wait.until, now)})`;
    const place = isAtStep(wait) ? ` at ${wait.key}` : '';
    return `  ${describeAim(wait)}${place}, ${describeTimes(wait)}${left}`;
  });
  const more = waits.length - lines.length + (record.waitingForOmitted ?? 0);
  return more > 0 ? [...lines, `  ... and ${count(more, 'wait')} more`] : lines;
}

/** All waits in a few words. @param now - Unix ms */
export function summarizeWaits(record: Execution<unknown>, now: number): string {
  const [first, ...others] = waitsOf(record);
  if (!first) return '';
  const left = first.until === undefined ? '' : `, ${formatDistance(first.until, now)}`;
  const more = others.length + (record.waitingForOmitted ?? 0);
  return `${describeAim(first)}${left}${more > 0 ? `, and ${more} more` : ''}`;
}
