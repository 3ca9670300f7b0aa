/** One agent's row as a line of text. */

import type { AgentRow } from './agent-rows.ts';
import type { Colors } from './output.ts';
import { count, cutText, formatDuration, oneLine, textWidth } from './text.ts';

export interface RowStyle {
  readonly colors: Colors;
  /** Columns of the names. */
  readonly nameWidth: number;
  /** Columns of the whole line. */
  readonly columns: number;
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** Monotonic ms for what is measured, Unix ms for the instants that events carry. */
export interface Instant {
  readonly monotonic: number;
  readonly wall: number;
}

/** @param now - moves the spinner, the elapsed time and the wait before the next attempt */
export function formatRow(row: AgentRow, now: Instant, style: RowStyle): string {
  const { colors } = style;
  const name = cutText(row.name, style.nameWidth).padEnd(style.nameWidth);
  const facts = describeRow(row, now);
  const room = style.columns - textWidth(name) - 6;
  const text = cutText(facts.join('  '), room);
  if (row.active > 0) {
    const frame = SPINNER[Math.floor(now.monotonic / 80) % SPINNER.length] as string;
    return `  ${row.retryAt === undefined ? colors.cyan(frame) : colors.yellow(frame)} ${name}  ${text}`;
  }
  if (row.stopped)
    return `  ${colors.yellow('-')} ${name}  ${cutText(`${formatDuration(row.duration)}  stopped`, room)}`;
  if (row.failed > 0) return `  ${colors.red('✗')} ${name}  ${colors.red(text)}`;
  if (row.completed > 0) return `  ${colors.green('✓')} ${name}  ${colors.dim(text)}`;
  return colors.dim(`  - ${name}  skipped`);
}

/** The facts of a row that belong behind its name, such as `1.2s`, `2 attempts`. */
function describeRow(row: AgentRow, now: Instant): string[] {
  const done = row.completed + row.failed;
  const running = row.active > 0;
  const facts = [formatDuration(running ? now.monotonic - row.startedAt : row.duration).padStart(5)];
  if (done + row.active > 1) {
    facts.push(running ? `${done.toLocaleString('en-US')} done, ${row.active} running` : count(done, 'run'));
    if (row.failed > 0) facts.push(`${row.failed} failed`);
    if (row.retries > 0) facts.push(row.retries === 1 ? '1 retry' : `${row.retries.toLocaleString('en-US')} retries`);
  } else if (running && row.retryAt !== undefined && row.retryAt > now.wall) {
    facts.push(`attempt ${row.attempts} in ${formatDuration(row.retryAt - now.wall)}`, oneLine(row.message ?? ''));
  } else if (row.attempts > 1) {
    facts.push(running ? `attempt ${row.attempts}` : count(row.attempts, 'attempt'));
  }
  if (!running && row.failed > 0) facts.push(oneLine(row.message ?? ''));
  return facts;
}
