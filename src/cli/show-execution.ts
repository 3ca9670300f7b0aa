/** One execution's record as text for people. */

import type { AgentRun, Execution, ExecutionTrigger } from '../engine/model/execution.ts';
import { count, cutText, formatDuration, oneLine, printJson, textWidth } from './text.ts';
import { formatDistance, formatInstant } from './times.ts';

/** Runs that are shown one by one; of those behind them, the failed ones. */
const SHOWN_RUNS = 100;
const LABEL = 10;

/**
 * @param now - Unix ms
 * @param width - columns of the terminal; undefined cuts nothing
 */
export function describeExecution(record: Execution<unknown>, now: number, width: number | undefined): string {
  const { id, ensemble, status, trigger, version, createdAt, startedAt, finishedAt, duration, error } = record;
  const ago = (instant: number) => `${formatInstant(instant)} (${formatDistance(instant, now)})`;
  const facts: (readonly [label: string, text: string | undefined])[] = [
    ['ensemble', ensemble],
    ['status', status],
    ['created', startedAt === createdAt ? undefined : ago(createdAt)],
    ['started', startedAt === undefined ? undefined : ago(startedAt)],
    ['finished', finishedAt === undefined ? undefined : formatInstant(finishedAt)],
    ['duration', duration === undefined ? undefined : formatDuration(duration)],
    [
      'deadline',
      record.deadlineAt === undefined || finishedAt !== undefined ? undefined : formatInstant(record.deadlineAt),
    ],
    ['trigger', describeTrigger(trigger)],
    ['parent', record.parentId],
    ['retry of', record.retryOf],
    ['version', version],
    ['error', error && `${error.code}${error.agent === undefined ? '' : ` at ${error.agent}`}: ${error.message}`],
  ];
  const lines = [oneLine(id)];
  for (const [label, text] of facts) {
    // What went wrong is never cut.
    if (text !== undefined)
      lines.push(`  ${label.padEnd(LABEL)}${label === 'error' ? oneLine(text) : cut(text, width, LABEL + 2)}`);
  }
  lines.push('', 'agents', ...describeRuns(record, width), '', 'input', indent(printJson(record.input)));
  if (finishedAt !== undefined) lines.push('', 'output', indent(printJson(record.output)));
  return `${lines.join('\n')}\n`;
}

function describeTrigger({ type, cron, timezone, scheduledAt }: ExecutionTrigger): string {
  if (cron === undefined || scheduledAt === undefined) return type;
  return `${type}, ${cron} ${timezone}, due at ${formatInstant(scheduledAt)}`;
}

function describeRuns({ agents, metrics, finishedAt }: Execution<unknown>, width: number | undefined): string[] {
  if (agents.length === 0) return [finishedAt === undefined ? '  none has ended yet' : '  none ran'];
  const names = new Map<string, number>();
  for (const { name } of agents) names.set(name, (names.get(name) ?? 0) + 1);
  const shown = agents.filter((run, i) => i < SHOWN_RUNS || run.status === 'failed');
  const nameWidth = Math.min(32, Math.max(...shown.map(({ name }) => textWidth(name))));
  const lines = shown.flatMap((run) => describeRun(run, nameWidth, (names.get(run.name) ?? 0) > 1, width));
  const left = Math.max(metrics.agents, agents.length) - shown.length;
  if (left > 0)
    lines.push(`  ... and ${count(left, 'run')} more${agents.length > shown.length ? '; --json has them' : ''}`);
  return lines;
}

const MARKS: Readonly<Record<AgentRun['status'], string>> = { completed: '✓', failed: '✗', retrying: '…' };

function describeRun(run: AgentRun, nameWidth: number, repeated: boolean, width: number | undefined): string[] {
  const { name, key, status, attempts, duration, output, outputOmitted, error } = run;
  const shownName = cutText(oneLine(name), nameWidth);
  const padded = shownName + ' '.repeat(Math.max(0, nameWidth - textWidth(shownName)));
  const facts = [formatDuration(duration).padStart(6)];
  if (attempts > 1) facts.push(count(attempts, 'attempt'));
  if (status === 'retrying') facts.push('tries again');
  // The place tells one run of a loop from the other.
  if (repeated) facts.push(key);
  const lines = [`  ${MARKS[status] ?? '?'} ${padded}  ${oneLine(facts.join('  '))}`];
  if (error) lines.push(`      ${oneLine(`${error.code}: ${error.message}`)}`);
  else if (outputOmitted) lines.push('      (a large output, which the record leaves out)');
  else if (status === 'completed') lines.push(`      ${cut(JSON.stringify(output), width, 6)}`);
  return lines;
}

/** @param before - columns that stand in front */
function cut(text: string, width: number | undefined, before: number): string {
  const safe = oneLine(text);
  return width === undefined ? safe : cutText(safe, Math.max(20, width - before));
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ');
}
