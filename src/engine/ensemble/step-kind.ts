/**
 * What a stored record says about its step, found from its key alone.
 *
 * | key, with the step's key `flow[3]` | stored by | says that the step ... |
 * |---|---|---|
 * | `flow[3]`, not a note | result | is an agent that ran |
 * | `flow[3]!agent.retry[1]` | mark | had a failed attempt, which is retried |
 * | `flow[3]!agent.ended` | mark | has its final result, after a retry |
 * | `flow[3]!<kind>.skipped` | mark | was skipped |
 * | `flow[3]!<kind>.failed` | mark | failed before it began |
 * | `flow[3]!if.chose`, also `switch`, `route` | mark | chose a branch |
 * | `flow[3]!foreach.begun`, also `parallel`, `while`, `try`, `wait` | mark | began |
 * | `flow[3]!foreach.ended`, also `parallel`, `while`, `try`, `sleep` | mark | ended |
 * | `flow[3].sleep` | decision | began to sleep |
 * | `flow[3].wait.until` | decision | waits at most until an instant |
 * | `flow[3].wait` | decision | took a signal, or waited in vain |
 * | `flow[3].ensemble.begun` | decision | is going to start a child execution |
 * | `flow[3]!ensemble.started` | mark | started it |
 * | `flow[3].ensemble` | decision | knows how the child ended |
 * | `flow[3].model[1]`, also `tool`, `send` | decision | is an agent that has a part of its attempt, a call of a model or a tool or a sent message: a step of its own |
 * | `run.request` | with the start | - (what the execution keeps of the request that started it) |
 * | `run!resumed[2]` | mark | - (the execution was resumed after a worker's death) |
 *
 * No other record is about a step. A mark only reports: no replay reads it. No other note's key ends like the key of a mark.
 */

import type { Json } from '../base/json/json.ts';
import type { ExecutionError } from '../execution/execution.ts';
import { withoutStack } from '../execution/execution-error.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import { VERBS } from './step-verb.ts';

/** The form of a step. */
export type StepKind =
  | 'agent'
  | 'route'
  | 'if'
  | 'switch'
  | 'foreach'
  | 'while'
  | 'parallel'
  | 'try'
  | 'sleep'
  | 'wait'
  | 'ensemble'
  | 'model'
  | 'tool'
  | 'send';

/** The kinds of parts of an attempt. */
type PartKind = Extract<StepKind, 'model' | 'tool' | 'send'>;

/** What a record says about a step. `until`: how long a `wait` waits. `resumed`: of the execution, not of a step. */
export type StepFact =
  | 'result'
  | 'retry'
  | 'skipped'
  | 'failed'
  | 'chose'
  | 'begun'
  | 'until'
  | 'started'
  | 'ended'
  | 'resumed';

export interface RecordRole {
  /** The key of the step, such as `flow[3]`. */
  readonly step: string;
  readonly kind: StepKind;
  readonly fact: StepFact;
}

const MARK = /^(.*)!(?:([a-z]+)\.)?([a-z]+)(?:\[\d+\])?$/s;
const PART = /\.(model|tool|send)\[\d+\]$/;
const DECISIONS: readonly (readonly [suffix: string, kind: StepKind, fact: StepFact])[] = [
  ['.sleep', 'sleep', 'begun'],
  ['.wait', 'wait', 'ended'],
  ['.wait.until', 'wait', 'until'],
  ['.ensemble.begun', 'ensemble', 'begun'],
  ['.ensemble', 'ensemble', 'ended'],
];

/** @returns undefined for a record that is not about a step */
export function roleOf({ key, note }: Pick<StepRecord, 'key' | 'note'>): RecordRole | undefined {
  if (!note) return { step: key, kind: 'agent', fact: 'result' };
  if (isMarkKey(key)) {
    const [, step = '', kind, fact] = MARK.exec(key) ?? [];
    return { step, kind: (kind ?? 'agent') as StepKind, fact: fact as StepFact };
  }
  const part = PART.exec(key);
  if (part) return { step: key, kind: part[1] as StepKind, fact: 'result' };
  for (const [suffix, kind, fact] of DECISIONS) {
    if (key.endsWith(suffix)) return { step: key.slice(0, -suffix.length), kind, fact };
  }
  return undefined;
}

/** Whether a record is the stored result of a part of an attempt. */
export function isPart({ key, note }: Pick<StepRecord, 'key' | 'note'>): boolean {
  return note === true && PART.test(key);
}

/** Whether a record is a mark: it only reports. */
export function isMark({ key, note }: Pick<StepRecord, 'key' | 'note'>): boolean {
  return note === true && isMarkKey(key);
}

// The name of a case may contain `!`, but brackets or a point with more text follow it in every other note's key.
function isMarkKey(key: string): boolean {
  const at = key.lastIndexOf('!');
  return at >= 0 && MARK_END.test(key.slice(at));
}

const MARK_END = /^!(?:resumed\[\d+\]|[a-z]+\.(?:retry\[\d+\]|skipped|failed|chose|begun|started|ended))$/;

/** The data of a new note: a decision or a mark. */
interface NewNote {
  /** Unix ms of what it reports. */
  readonly at: number;
  readonly output: Json;
  /** For a decision about the end of a wait: the signal's name. Default: empty. */
  readonly name?: string | undefined;
  readonly error?: ExecutionError | undefined;
  /** The number of the attempt, for a mark about one. Default 1. */
  readonly attempts?: number | undefined;
  /** ms. Default 0. */
  readonly duration?: number | undefined;
}

export function toNote(key: string, { at, output, name = '', error, attempts = 1, duration = 0 }: NewNote): StepRecord {
  // In the order of a result's fields, without a spread: else a `foreach` of results in memory takes a fifth more CPU time.
  const note = true as const;
  if (!error) return { key, name, status: 'completed', attempts, startedAt: at, duration, output, note };
  const shown = withoutStack(error);
  return { key, name, status: 'failed', attempts, startedAt: at, duration, output, error: shown, note };
}

/** The mark that is stored together with an attempt that is retried, or with the result after a retry. */
export function markOfAttempt({ key, name, attempts, startedAt, duration, error, retryAt }: StepRecord): StepRecord {
  const at = startedAt + duration;
  if (retryAt === undefined) return toNote(markKey(key, 'agent', 'ended'), { at, output: {}, attempts });
  return toNote(markKey(key, 'agent', 'retry', attempts), { at, output: { name, retryAt }, error, attempts });
}

/** The key of a part of an agent's attempt. @param step - the key of the agent */
export function partKey(step: string, kind: PartKind, number: number): string {
  return `${step}.${kind}[${number}]`;
}

/** @param step - the key of a step */
export function markKey(step: string, kind: StepKind, fact: StepFact, number?: number): string {
  return number === undefined ? `${step}!${kind}.${fact}` : `${step}!${kind}.${fact}[${number}]`;
}

/** @param recoveries - how often the worker of the execution died */
export function resumedKey(recoveries: number): string {
  return `run!resumed[${recoveries}]`;
}

/** The keys of all records that may stand for a step. */
export function keysOfStep(step: string): readonly string[] {
  const kinds: readonly StepKind[] = [...VERBS, 'route'];
  const marks = (['begun', 'chose', 'skipped', 'failed'] as const).flatMap((fact) =>
    kinds.map((kind) => markKey(step, kind, fact)),
  );
  return [step, ...DECISIONS.map(([suffix]) => step + suffix), ...marks];
}
