/** The state of one agent, or of one step of a flow, as a line of text. */

import { isLeafAgent, isLoop, type TreeNode } from '../graph/flow-tree.ts';
import type { Colors } from '../terminal/output.ts';
import { count, cutText, fitText, formatDuration, oneLine } from '../terminal/text.ts';
import { type AgentRow, waitingRuns } from './agent-rows.ts';

export interface RowStyle {
  readonly colors: Colors;
  /** The columns of the names with their indents. */
  readonly nameWidth: number;
  /** The columns of the whole line. */
  readonly columns: number;
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** Monotonic ms for durations, Unix ms for the instants in events. */
export interface Instant {
  readonly monotonic: number;
  readonly wall: number;
}

/** A line of the tree. */
export interface NodeLine {
  readonly node: TreeNode;
  /** The only agent of a `foreach`, which shares the line of the `foreach`. */
  readonly agent: TreeNode | undefined;
}

/** The lines of a tree: those of the nodes that were reached. */
export function nodeLines(nodes: readonly TreeNode[]): NodeLine[] {
  return nodes.flatMap((node) => {
    if (!node.reached) return [];
    const [only] = node.children;
    const isOneAgent = node.verb === 'foreach' && node.children.length === 1 && only && isLeafAgent(only);
    const agent = isOneAgent ? only : undefined;
    return [{ node, agent }, ...(agent ? [] : nodeLines(node.children))];
  });
}

/** The text in the column of names, without its indent. */
export function labelOf({ node, agent }: NodeLine): string {
  return agent ? `foreach ${agent.title}` : node.title;
}

/** @param now - determines the spinner, the elapsed time and the remaining time */
export function formatNode(line: NodeLine, now: Instant, style: RowStyle): string {
  const { node, agent } = line;
  const { colors } = style;
  const indent = '  '.repeat(node.depth);
  const width = Math.max(1, style.nameWidth - indent.length);
  const name = fitText(oneLine(labelOf(line)), width);
  const space = style.columns - indent.length - width - 6;
  const text = cutText(oneLine(describeNode(line, now).join('  ')), space);
  const frame = SPINNER[Math.floor(now.monotonic / 80) % SPINNER.length] as string;
  const print = (icon: string, facts: string) => `  ${indent}${icon} ${name}  ${facts}`.trimEnd();
  const run = agent?.run ?? node.run;
  const isAgent = agent !== undefined || isLeafAgent(node);
  const isActive = isAgent ? run.active > 0 || (agent !== undefined && !node.over) : !node.over;
  if (isActive && node.begun) {
    const waiting = waitingRuns(run, now.wall);
    const waits = (waiting > 0 && waiting === run.active) || (node.until ?? 0) > now.wall;
    return print(waits ? colors.yellow(frame) : colors.cyan(frame), text);
  }
  // Another item or round may follow, or the begin of the step was not received.
  if (isActive || (isAgent && node.inLoop && !node.over)) return print(colors.dim('·'), colors.dim(text));
  if (run.stopped) return print(colors.yellow('-'), cutText(`${formatDuration(run.duration)}  stopped`, space));
  if (isAgent && run.failed > 0) return print(colors.red('✗'), colors.red(text));
  if (isLeafAgent(node) ? run.completed === 0 : node.run.skipped > 0) return colors.dim(print('-', 'skipped'));
  // The events do not show whether the flow handled a failure.
  if (!isAgent && hasFailed(node)) return print(colors.dim('•'), colors.dim(text));
  return print(colors.green('✓'), colors.dim(text));
}

function hasFailed({ run, children }: TreeNode): boolean {
  return run.failed > 0 || children.some(hasFailed);
}

function describeNode({ node, agent }: NodeLine, now: Instant): string[] {
  const isOver = node.over;
  const time = formatDuration(isOver ? node.run.duration : now.monotonic - node.run.startedAt).padStart(5);
  if (agent) return describeItems(node, agent.run, time, now);
  if (isLeafAgent(node)) return describeRow(node.run, now);
  const facts = [time];
  if (isLoop(node) && node.passes > 0) facts.push(describePasses(node));
  if (node.chosen !== undefined) facts.push(node.chosen);
  if (node.until !== undefined && Number.isFinite(node.until) && !isOver && node.until > now.wall) {
    facts.push(`${formatDuration(node.until - now.wall)} left`);
  }
  return facts;
}

function describePasses({ verb, items, passes, over }: TreeNode): string {
  const noun = verb === 'while' ? 'round' : 'item';
  if (over) return count(passes, noun);
  const of = items === undefined ? '' : ` of ${items.toLocaleString('en-US')}`;
  return `${noun} ${passes.toLocaleString('en-US')}${of}`;
}

function describeItems({ items, over }: TreeNode, run: AgentRow, time: string, now: Instant): string[] {
  const done = (run.completed + run.failed).toLocaleString('en-US');
  const of = items === undefined ? '' : ` of ${items.toLocaleString('en-US')}`;
  const facts = [time, `${done}${of} done${describeActive(run, now)}`];
  return [...facts, ...describeTroubles(run), ...(over && run.failed > 0 ? [run.message ?? ''] : [])];
}

function describeActive(run: AgentRow, { wall }: Instant): string {
  const waiting = waitingRuns(run, wall);
  const running = run.active - waiting;
  return `${running > 0 ? `, ${running} running` : ''}${waiting > 0 ? `, ${waiting} to retry` : ''}`;
}

function describeTroubles({ failed, retries, skipped }: AgentRow): string[] {
  const facts: string[] = [];
  if (failed > 0) facts.push(`${failed.toLocaleString('en-US')} failed`);
  if (skipped > 0) facts.push(`${skipped.toLocaleString('en-US')} skipped`);
  if (retries > 0) facts.push(retries === 1 ? '1 retry' : `${retries.toLocaleString('en-US')} retries`);
  return facts;
}

/** The facts of an agent's runs, such as `1.2s`, `2 attempts`. */
function describeRow(row: AgentRow, now: Instant): string[] {
  const done = row.completed + row.failed;
  const running = row.active > 0;
  const facts = [formatDuration(running ? now.monotonic - row.startedAt : row.duration).padStart(5)];
  if (done + row.active > 1) {
    facts.push(running ? `${done.toLocaleString('en-US')} done${describeActive(row, now)}` : count(done, 'run'));
    facts.push(...describeTroubles(row));
  } else if (running && waitingRuns(row, now.wall) > 0) {
    const [{ retryAt } = { retryAt: now.wall }] = row.again.values();
    facts.push(`attempt ${row.attempts} in ${formatDuration(retryAt - now.wall)}`, row.message ?? '');
  } else if (row.attempts > 1) {
    facts.push(running ? `attempt ${row.attempts}` : count(row.attempts, 'attempt'));
  }
  if (!running && row.failed > 0) facts.push(row.message ?? '');
  return facts;
}
