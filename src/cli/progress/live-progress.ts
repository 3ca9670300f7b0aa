/** Progress on a terminal: the flow as a tree with one line for each step, redrawn in place while the execution runs. */

import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import type { OrchestratorEvent } from '../../engine/events/event.ts';
import { createFlowTree, isLeafAgent, type TreeNode } from '../graph/flow-tree.ts';
import type { Colors, ForeignWriter, OutputStream } from '../terminal/output.ts';
import { textWidth } from '../terminal/text.ts';
import { formatNode, type Instant, labelOf, type NodeLine, nodeLines } from './format-row.ts';

/** Shows the progress of an execution. */
export interface ProgressDisplay {
  update(event: OrchestratorEvent): void;
  /** Updates the shown times; called several times a second. */
  tick(): void;
  /** Shows the last state, which stays on the screen. */
  finish(): void;
  /** Removes the display while a person is asked something. */
  pause?(): void;
  /** Shows it again. */
  resume?(): void;
  /** Notified of text that scripts write in the meantime. */
  readonly foreign?: ForeignWriter;
}

export interface ProgressOptions {
  readonly stream: OutputStream;
  readonly colors: Colors;
  readonly now: () => Instant;
  /** The columns of the longest name of an agent. */
  readonly nameWidth: number;
  /** The definition of the execution; the live display shows its structure. */
  readonly definition?: Pick<EnsembleDefinition, 'flow' | 'agents'>;
}

const HIDE_CURSOR = '\u001b[?25l';
/** Written at the end of every run, also after an interrupt. */
export const SHOW_CURSOR = '\u001b[?25h';
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control sequences
const COLOUR = /\u001b\[\d+m/g;

/** The largest width of names; it is smaller in a narrow window. */
const MAX_NAME_WIDTH = 44;

export function createLiveProgress({ stream, colors, now, nameWidth, definition }: ProgressOptions): ProgressDisplay {
  const tree = createFlowTree(definition);
  // Nodes whose lines have moved above the redrawn block and no longer change.
  const settled = new Set<TreeNode>();
  let drawn: readonly number[] = [];
  let midLine = false;
  let hidden = false;
  let hasEnded = false;
  let isPaused = false;
  let widest = nameWidth;

  const erase = () => {
    const columns = stream.columns || 80;
    // A narrower window has wrapped the lines since they were drawn.
    const up = drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    drawn = [];
    return up > 0 ? `\u001b[${up}A\r` : '';
  };
  const draw = () => {
    if (isPaused) return;
    const columns = stream.columns || 80;
    const height = Math.max(1, (stream.rows || 24) - 1);
    const all = nodeLines(tree.roots).filter(({ node }) => !settled.has(node));
    const { moved, shown } = fitWindow(all, height, hasEnded);
    for (const { node } of moved) settled.add(node);
    // The column never becomes narrower, so that the text does not jump.
    for (const line of shown) widest = Math.max(widest, 2 * line.node.depth + textWidth(labelOf(line)));
    const limit = Math.max(8, Math.min(MAX_NAME_WIDTH, Math.floor(columns * 0.4)));
    const style = { colors, nameWidth: Math.min(widest, limit), columns: columns - 1 };
    const instant = now();
    const lines = shown.map((line) => formatNode(line, instant, style));
    const above = moved.map((line) => formatNode(line, instant, style));
    const start = erase() + (midLine ? '\n' : '') + (hidden ? '' : HIDE_CURSOR);
    midLine = false;
    hidden = true;
    drawn = lines.map((text) => textWidth(text.replace(COLOUR, '')));
    // Overwrites each line and erases its rest. Erasing the whole block first would flicker.
    stream.write(`${start}${[...above, ...lines].map((text) => `${text}\u001b[K\n`).join('')}\u001b[J`);
  };
  return {
    update: (event) => tree.apply(event, now().monotonic),
    tick: draw,
    pause() {
      stream.write(`${erase()}${midLine ? '\n' : ''}\u001b[J${SHOW_CURSOR}`);
      midLine = false;
      hidden = false;
      isPaused = true;
    },
    resume() {
      isPaused = false;
      draw();
    },
    finish() {
      isPaused = false;
      const { monotonic, wall } = now();
      tree.end(monotonic, wall);
      hasEnded = true;
      draw();
      stream.write(SHOW_CURSOR);
      drawn = [];
      hidden = false;
    },
    foreign: {
      before() {
        const text = erase();
        if (text) stream.write(`${text}\u001b[J`);
      },
      after(text) {
        if (text !== '') midLine = !text.endsWith('\n');
        // A script may continue an incomplete line. The next tick ends the line if necessary.
        if (!midLine) draw();
      },
    },
  };
}

/** Chooses the lines for a window of `height` lines. Finished nodes move up; if that is not enough, finished nodes are left out. */
function fitWindow(
  all: readonly NodeLine[],
  height: number,
  hasEnded: boolean,
): { readonly moved: readonly NodeLine[]; readonly shown: readonly NodeLine[] } {
  let first = 0;
  while (all.length - first > height && isOver(all[first] as NodeLine, hasEnded)) first += 1;
  let shown = all.slice(first);
  const surplus = shown.length - height;
  if (surplus > 0) {
    const dropped = new Set(shown.filter((line) => isOver(line, hasEnded)).slice(0, surplus));
    shown = shown.filter((line) => !dropped.has(line)).slice(-height);
  }
  return { moved: all.slice(0, first), shown };
}

function isOver({ node }: NodeLine, hasEnded: boolean): boolean {
  if (hasEnded || node.over) return true;
  return isLeafAgent(node) && !node.inLoop && node.run.active === 0;
}
