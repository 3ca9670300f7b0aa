/** What is counted of an end: a line of text that a commit stores with it. */

import { FAILED_STATUSES, type FinalStatus, isFinal } from '../../execution/execution.ts';
import type { ExecutionEnd, NewExecution } from '../../execution/stored-execution.ts';
import { bucketOf } from './histogram.ts';

/** Ends in one minute that differ only in their ids and instants. */
export interface EndGroup {
  readonly ensemble: string;
  /** The hash of the definition. */
  readonly version: string;
  readonly status: FinalStatus;
  /** The bucket of the time from start to end, see `Histogram`. */
  readonly duration: number;
  /** The bucket of the time from acceptance to start, or to the end without one. */
  readonly wait: number;
  /** A step of another execution started it. */
  readonly isChild: boolean;
  /** Of the error, if it failed or timed out. The message is folded. */
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly count: number;
  /** Unix ms. */
  readonly firstAt: number;
  readonly firstId: string;
  readonly lastAt: number;
  readonly lastId: string;
}

/** In ms. */
export const MINUTE = 60_000;
const IS_CHILD = '1';

/**
 * `at id ensemble version status duration wait child fault`, with `|` between them; the fault is JSON, or empty. Undefined for a dry run:
 * it is not counted.
 * @param startedAt - undefined if it never began
 */
export function lineOfEnd(
  {
    id,
    ensemble,
    version,
    createdAt,
    trigger,
  }: Pick<NewExecution, 'id' | 'ensemble' | 'version' | 'createdAt' | 'trigger'>,
  startedAt: number | undefined,
  { status, finishedAt, duration, error }: Pick<ExecutionEnd, 'status' | 'finishedAt' | 'duration' | 'error'>,
): string | undefined {
  if (trigger.dryRun) return undefined;
  const fault =
    FAILED_STATUSES.includes(status) && error ? JSON.stringify([error.code, foldMessage(error.message)]) : '';
  const wait = bucketOf((startedAt ?? finishedAt) - createdAt);
  const child = trigger.parentId === undefined ? '' : IS_CHILD;
  return `${finishedAt}|${id}|${ensemble}|${version}|${status}|${bucketOf(duration)}|${wait}|${child}|${fault}`;
}

/** Groups lines. One that is damaged is passed over: it is a count. */
export function groupEnds(lines: Iterable<string>): readonly EndGroup[] {
  const found = new Map<string, { -readonly [K in keyof EndGroup]: EndGroup[K] } | undefined>();
  for (const line of lines) {
    const first = line.indexOf('|');
    const second = line.indexOf('|', first + 1);
    if (first < 0 || second < 0) continue;
    const [at, id, rest] = [Number(line.slice(0, first)), line.slice(first + 1, second), line.slice(second)];
    const key = Math.floor(at / MINUTE) + rest;
    const known = found.get(key);
    if (!known) {
      if (!found.has(key)) found.set(key, readGroup(at, id, rest));
      continue;
    }
    known.count += 1;
    if (at < known.firstAt) Object.assign(known, { firstAt: at, firstId: id });
    if (at >= known.lastAt) Object.assign(known, { lastAt: at, lastId: id });
  }
  return [...found.values()].filter((group) => group !== undefined);
}

/** Groups those of the lines that are of a span, and of an ensemble. */
export function groupEndsIn(
  lines: Iterable<string>,
  {
    since,
    until,
    ensemble,
  }: { readonly since: number; readonly until: number; readonly ensemble?: string | undefined },
): readonly EndGroup[] {
  return groupEnds(lines).filter(
    (group) =>
      group.firstAt >= since && group.firstAt < until && (ensemble === undefined || group.ensemble === ensemble),
  );
}

function readGroup(at: number, id: string, rest: string): EndGroup | undefined {
  const [, ensemble, version, status, duration, wait, child, ...fault] = rest.split('|');
  const [ran, waited] = [Number(duration), Number(wait)];
  if (!Number.isFinite(at) || !ensemble || version === undefined || !isFinal(status as FinalStatus)) return undefined;
  if (!Number.isInteger(ran) || !Number.isInteger(waited)) return undefined;
  return {
    ...{ ensemble, version, status: status as FinalStatus, duration: ran, wait: waited, isChild: child === IS_CHILD },
    ...readFault(fault.join('|')),
    ...{ count: 1, firstAt: at, firstId: id, lastAt: at, lastId: id },
  };
}

function readFault(text: string): Pick<EndGroup, 'code' | 'message'> {
  if (text === '') return {};
  try {
    const [code, message] = JSON.parse(text) as readonly unknown[];
    return { code: String(code), message: String(message) };
  } catch {
    return {};
  }
}

const MAX_LENGTH = 200;
/** Texts in quotes, then ids, then numbers. No part can match in two ways, so the time is linear. */
const NAMED =
  /"[^"\n]*"|'[^'\n]*'|`[^`\n]*`|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[a-z]{2,8}_[0-9A-Za-z]{16,}\b|\b(?=[a-z]*\d)[0-9a-f]{12,}\b|\b[0-9A-HJKMNP-TV-Z]{26}\b|\d+(?:[.,:]\d+)*/g;

/** A number after one of these words says what happened. */
const MEANT = /(?:answered|status|code|HTTP) $/;

/** @returns the message with `‹text›`, `‹id›` and `‹number›` in place of what it names */
export function foldMessage(message: string): string {
  const folded = message.slice(0, 2 * MAX_LENGTH).replace(NAMED, (found, at: number, whole: string) => {
    if (/^["'`]/.test(found)) return '‹text›';
    if (!/^\d+(?:[.,:]\d+)*$/.test(found) || found.length >= 12) return '‹id›';
    return MEANT.test(whole.slice(Math.max(0, at - 12), at)) ? found : '‹number›';
  });
  return folded.length > MAX_LENGTH ? `${folded.slice(0, MAX_LENGTH - 1)}…` : folded;
}
