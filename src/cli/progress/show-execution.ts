/** One execution's record as text for people. */

import type { ExecutionStep, StepStatus } from '../../engine/ensemble/execution-step.ts';
import type { AgentResult, Execution } from '../../engine/execution/execution.ts';
import { type ExecutionFact, executionFacts } from '../../engine/execution/execution-facts.ts';
import { count, cutText, fitText, formatDuration, oneLine, printJson, textWidth } from '../terminal/text.ts';
import { formatDistance, formatInstant } from '../terminal/times.ts';
import { describeWaits } from './describe-waits.ts';
import { describeError } from './show-error.ts';

/** How many runs are shown; of the later ones, only the failed runs. */
const SHOWN_RUNS = 100;
const LABEL = 10;
/** The largest width of a column of names or keys on a terminal. */
const MAX_COLUMN = 32;

export interface ShownSteps {
  /** Shown instead of the agents. */
  readonly steps?: readonly ExecutionStep[] | undefined;
  /** The agents that are at work, or were when the execution was stopped. */
  readonly atWork?: readonly { readonly key: string; readonly name: string }[];
}

/**
 * @param now - Unix ms
 * @param width - of the terminal, in columns; undefined: lines are not cut
 */
export function describeExecution(
  record: Execution<unknown>,
  now: number,
  width: number | undefined,
  { steps, atWork = [] }: ShownSteps = {},
): string {
  const { id, ensemble, status, finishedAt, error } = record;
  const facts = executionFacts(record).map((fact) => [fact.name, textOf(fact, now)] as const);
  const lines = [oneLine(id)];
  for (const [name, text] of [['ensemble', ensemble], ['status', status], ...facts] as const)
    lines.push(`  ${name.padEnd(LABEL)}${cut(text, width, LABEL + 2)}`);
  if (error) {
    // An error is never cut.
    const text = `${error.code}${error.agent === undefined ? '' : ` at ${error.agent}`}: ${error.message}`;
    lines.push(`  ${'error'.padEnd(LABEL)}${oneLine(text)}`);
    if (!isOfRun(record)) lines.push(...describeError(error).map((line) => ' '.repeat(LABEL + 2) + line));
  }
  const waits = describeWaits(record, now).map((line) => cut(line, width, 0));
  if (waits.length > 0) lines.push('', 'waits for', ...waits);
  if (steps) lines.push('', 'steps', ...describeSteps(steps, width), '');
  else lines.push('', 'agents', ...describeRuns(record, width), '');
  if (atWork.length > 0) {
    const title = finishedAt === undefined ? 'at work' : 'stopped at work';
    lines.push(title, ...atWork.map(({ name, key }) => cut(`${name} ${key}`, width, 2)).map((line) => `  ${line}`), '');
  }
  lines.push('input', indent(printJson(record.input)));
  if (status === 'completed') lines.push('', 'output', indent(printJson(record.output)));
  else if (record.partialOutput !== undefined)
    lines.push('', 'partial output', indent(printJson(record.partialOutput)));
  return `${lines.join('\n')}\n`;
}

/** Whether a run of an agent shows the error of the execution. */
function isOfRun({ agents, error }: Execution<unknown>): boolean {
  return agents.some((run) => run.error !== undefined && run.error.message === error?.message);
}

function textOf({ name, kind, value }: ExecutionFact, now: number): string {
  if (kind === 'instant') {
    const ago = name === 'created' || name === 'started' ? ` (${formatDistance(value, now)})` : '';
    return formatInstant(value) + ago;
  }
  if (kind === 'duration') return name === 'duration' ? formatDuration(value) : `for ${formatDuration(value)}`;
  return kind === 'times' ? `${count(value, 'time')}, because its process died` : value;
}

function describeRuns({ agents, metrics, finishedAt }: Execution<unknown>, width: number | undefined): string[] {
  if (agents.length === 0) return [finishedAt === undefined ? '  no results yet' : '  no results'];
  const names = new Map<string, number>();
  for (const { name } of agents) names.set(name, (names.get(name) ?? 0) + 1);
  const shown = agents.filter((run, i) => i < SHOWN_RUNS || run.status === 'failed');
  const nameWidth = columnWidth(
    shown.map(({ name }) => name),
    width,
  );
  const lines = shown.flatMap((run) => describeRun(run, nameWidth, (names.get(run.name) ?? 0) > 1, width));
  const left = Math.max(metrics.agents, agents.length) - shown.length;
  if (left > 0)
    lines.push(`  ... and ${count(left, 'run')} more${agents.length > shown.length ? '; --json has them' : ''}`);
  return lines;
}

const MARKS: Readonly<Record<StepStatus, string>> = {
  completed: '✓',
  failed: '✗',
  retrying: '…',
  waiting: '…',
  running: '…',
  skipped: '-',
  cancelled: '-',
};

/** One line for each step, and one for its error. */
function describeSteps(steps: readonly ExecutionStep[], width: number | undefined): string[] {
  if (steps.length === 0) return ['  none yet'];
  const keys = columnWidth(
    steps.map(({ key }) => key),
    width,
  );
  const titles = columnWidth(steps.map(titleOf), width);
  return steps.flatMap((step) => {
    const { key, status, attempts, duration, executionId, error, kind, output } = step;
    const facts = [status === 'skipped' ? '' : formatDuration(duration)];
    if (status !== 'completed' && status !== 'failed') facts.push(status === 'retrying' ? 'will be retried' : status);
    if (attempts > 1) facts.push(count(attempts, 'attempt'));
    if (executionId !== undefined) facts.push(executionId);
    if (output !== undefined && kind !== 'agent' && kind !== 'sleep') facts.push(JSON.stringify(output));
    const text = `${fitText(oneLine(key), keys)}  ${fitText(oneLine(titleOf(step)), titles)}  ${facts.filter(Boolean).join('  ')}`;
    const line = `  ${MARKS[status]} ${cut(text, width, 4).trimEnd()}`;
    return error ? [line, `      ${oneLine(`${error.code}: ${error.message}`)}`] : [line];
  });
}

function titleOf({ kind, name }: ExecutionStep): string {
  return name === '' ? kind : `${kind} ${name}`;
}

/** @param width - of the terminal; undefined: the column is as wide as its longest text */
function columnWidth(texts: readonly string[], width: number | undefined): number {
  return Math.min(
    width === undefined ? Number.POSITIVE_INFINITY : MAX_COLUMN,
    texts.reduce((most, text) => Math.max(most, textWidth(oneLine(text))), 0),
  );
}

function describeRun(run: AgentResult, nameWidth: number, repeated: boolean, width: number | undefined): string[] {
  const { name, key, status, attempts, duration, output, outputOmitted, error } = run;
  const facts = [formatDuration(duration).padStart(6)];
  if (attempts > 1) facts.push(count(attempts, 'attempt'));
  if (status === 'retrying') facts.push('will be retried');
  // The key distinguishes the runs of a loop.
  if (repeated) facts.push(key);
  const lines = [`  ${MARKS[status] ?? '?'} ${fitText(oneLine(name), nameWidth)}  ${oneLine(facts.join('  '))}`];
  if (error) lines.push(`      ${oneLine(`${error.code}: ${error.message}`)}`);
  if (error) lines.push(...describeError(error).map((line) => `        ${line}`));
  else if (outputOmitted) lines.push('      (a large output, which the record does not contain)');
  else if (status === 'completed') lines.push(`      ${cut(JSON.stringify(output), width, 6)}`);
  return lines;
}

/** @param before - the columns before the text */
function cut(text: string, width: number | undefined, before: number): string {
  const safe = oneLine(text);
  return width === undefined ? safe : cutText(safe, Math.max(20, width - before));
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ');
}
