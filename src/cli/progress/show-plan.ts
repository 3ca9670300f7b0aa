/** Prints the plan of a dry run. */

import type { Json } from '../../engine/base/json/json.ts';
import type { Execution, PlannedStep } from '../../engine/execution/execution.ts';
import type { Output } from '../terminal/output.ts';
import { count, cutText, formatDuration, oneLine, printJson } from '../terminal/text.ts';

const VALUE_COLUMNS = 160;

export function printPlan(execution: Execution<unknown>, { colors, print, say }: Output): void {
  const { ensemble, plan = [], status, error, output } = execution;
  say(`${ensemble}: a dry run; nothing is sent, written or charged\n\n`);
  for (const step of plan) {
    const indent = '  '.repeat(1 + (step.within === undefined ? 0 : step.within.split('/').length));
    const [title, ...lines] = linesOf(step, colors);
    say(`${indent}${colors.dim(step.key)}  ${title}\n`);
    for (const line of lines) say(`${indent}    ${line}\n`);
  }
  const unknown = plan.filter((step) => step.unknown).length;
  const last = Math.max(0, ...plan.map(({ at, until }) => (until === undefined ? at : until - execution.createdAt)));
  const after = last > 0 ? `, after waits of ${formatDuration(last)}` : '';
  if (unknown > 0)
    say(
      `\n${count(unknown, 'step')} with a result whose type is not declared: null. \`ensemble validate --types\` says how to declare it.\n`,
    );
  if (status === 'completed') say(`\n${colors.green('✓')} ${ensemble} would complete${after}\n`);
  else {
    const where = error?.agent === undefined ? '' : ` at ${error.agent}`;
    say(
      `\n${colors.red('✗')} ${ensemble} would end as ${status}${where}${error ? `: ${oneLine(error.message)}` : ''}\n`,
    );
  }
  if (status === 'completed') print(`${printJson(output)}\n`);
}

/** Keys of a config that say what comes back. */
const SCHEMAS: ReadonlySet<string> = new Set(['response', 'schema']);

const ORIGIN = { types: 'by its types', execution: 'as recorded', operation: 'it ran' };

function linesOf(step: PlannedStep, colors: Output['colors']): string[] {
  const { kind, name, operation, input, config, error, output, from, unknown, until } = step;
  if (step.skipped) return [`${name || kind} ${colors.dim('is skipped')}`];
  if (kind === 'sleep') return [`sleeps until ${new Date(until ?? 0).toISOString()}`];
  if (kind === 'while') return ['the `while` still holds, with made-up results; the dry run continues after it'];
  const titles = { agent: name, wait: `waits for the signal ${name}`, ensemble: `ensemble ${name}` };
  const title = `${titles[kind]}${operation === undefined ? '' : colors.dim(` ${operation}`)}`;
  const nulls = unknown && `; not declared, so null: ${unknown.join(', ')}`;
  const origin = from === undefined ? '' : colors.dim(` (${ORIGIN[from]}${nulls ?? ''})`);
  return [
    title,
    ...shown('input', input),
    ...shown('config', config && Object.fromEntries(Object.entries(config).filter(([key]) => !SCHEMAS.has(key)))),
    ...(error ? [`fails  ${colors.red(oneLine(`${error.code}: ${error.message}`))}${origin}`] : []),
    ...shown('gives', output).map((line) => line + origin),
  ];
}

function shown(label: string, value: Json | undefined): string[] {
  if (value === undefined) return [];
  return [`${label.padEnd(6)} ${cutText(oneLine(JSON.stringify(value)), VALUE_COLUMNS)}`];
}
