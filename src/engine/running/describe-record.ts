/** Says in words what a stored record is. Keys have the form that the interpreter gives them. */

import { isPart } from '../ensemble/step-kind.ts';
import type { StepRecord } from '../execution/stored-execution.ts';

/** The decisions, by the end of their keys. `isStep`: a step of the flow made the decision, so the flow must reach it again. */
const DECISIONS: readonly (readonly [end: string, text: string, isStep: boolean])[] = [
  ['?', 'a condition that reads the state', false],
  ['.switch', 'a `switch` that reads the state', false],
  ['.items', 'a `foreach` whose items read the state', false],
  ['.foreach', 'the end of a `foreach` with concurrent items', false],
  ['.parallel', 'the end of a `parallel` whose branches compete', false],
  ['.finally', 'the end of a `try` that was stopped', false],
  ['.sleep', 'a `sleep`', true],
  ['.wait.until', 'a `wait` with a timeout', false],
  ['.wait', 'a `wait`', true],
  ['.ensemble.begun', 'the start of a child execution', true],
  ['.ensemble', 'a child execution', true],
];

function decisionOf(key: string) {
  return DECISIONS.find(([end]) => key.endsWith(end));
}

/** What a decision under this key is. */
export function describeKey(key: string): string {
  return decisionOf(key)?.[1] ?? 'a decision';
}

export function describeRecord({ key, name, note }: StepRecord): string {
  if (!note) return `agent \`${name}\``;
  if (isPart({ key, note })) return `a call of \`${name}\``;
  return name === '' ? describeKey(key) : `${describeKey(key)} for the signal \`${name}\``;
}

/** Whether a record belongs to a step that did work, or waited. */
export function isStep({ key, note }: StepRecord): boolean {
  return !note || (decisionOf(key)?.[2] ?? false);
}

/** The position of the step, without what the key of a decision adds. */
export function placeOf(key: string): string {
  const [end = ''] = decisionOf(key) ?? [];
  return key.slice(0, key.length - end.length);
}

/** The key of the agent whose operation called the step under this key. */
export function callerOf(key: string): string | undefined {
  return /^(.*?)\.(?:model|tool)\[\d+\]\./s.exec(key)?.[1];
}
