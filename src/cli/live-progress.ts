/** Progress on a terminal: the flow as a tree, a line a step, drawn anew in place while the run goes on. */

import type { EnsembleDefinition } from '../engine/model/ensemble.ts';
import type { OrchestratorEvent } from '../engine/model/event.ts';
import { createFlowTree, isLeafAgent, type TreeNode } from './flow-tree.ts';
import { formatNode, type Instant, labelOf, type NodeLine, nodeLines } from './format-row.ts';
import type { Colors, ForeignWriter, OutputStream } from './output.ts';
import { textWidth } from './text.ts';

/** How a run is shown while it goes on. */
export interface Progress {
  update(event: OrchestratorEvent): void;
  /** Shows how time goes by; called several times a second. */
  tick(): void;
  /** Leaves the last state standing. */
  finish(): void;
  /** For text that scripts write meanwhile. */
  readonly foreign?: ForeignWriter;
}

export interface ProgressOptions {
  readonly stream: OutputStream;
  readonly colors: Colors;
  readonly now: () => Instant;
  /** Columns of the longest name of an agent. */
  readonly nameWidth: number;
  /** What runs, whose structure is shown where lines can be drawn anew. */
  readonly definition?: Pick<EnsembleDefinition, 'flow' | 'agents'>;
}

const HIDE_CURSOR = '\u001b[?25l';
/** Written when a run ends, however it ends. */
export const SHOW_CURSOR = '\u001b[?25h';
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control sequences
const COLOUR = /\u001b\[\d+m/g;

/** Columns that names take at most; less in a narrow window. */
const WIDEST_NAME = 44;

export function createLiveProgress({ stream, colors, now, nameWidth, definition }: ProgressOptions): Progress {
  const tree = createFlowTree(definition);
  // Nodes whose lines stand above the drawn block for good.
  const settled = new Set<TreeNode>();
  let drawn: readonly number[] = [];
  let midLine = false;
  let hidden = false;
  let hasEnded = false;
  let widest = nameWidth;

  const erase = () => {
    const columns = stream.columns || 80;
    // A window that was made narrower has broken the lines since.
    const up = drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    drawn = [];
    return up > 0 ? `\u001b[${up}A\r` : '';
  };
  const draw = () => {
    const columns = stream.columns || 80;
    const height = Math.max(1, (stream.rows || 24) - 1);
    const all = nodeLines(tree.roots).filter(({ node }) => !settled.has(node));
    const { standing, shown } = fitWindow(all, height, hasEnded);
    for (const { node } of standing) settled.add(node);
    // It never becomes narrower, so that nothing jumps.
    for (const line of shown) widest = Math.max(widest, 2 * line.node.depth + textWidth(labelOf(line)));
    const most = Math.max(8, Math.min(WIDEST_NAME, Math.floor(columns * 0.4)));
    const style = { colors, nameWidth: Math.min(widest, most), columns: columns - 1 };
    const instant = now();
    const lines = shown.map((line) => formatNode(line, instant, style));
    const above = standing.map((line) => formatNode(line, instant, style));
    const start = erase() + (midLine ? '\n' : '') + (hidden ? '' : HIDE_CURSOR);
    midLine = false;
    hidden = true;
    drawn = lines.map((text) => textWidth(text.replace(COLOUR, '')));
    // Each line is written over and its rest erased, not the block at once: that would flicker.
    stream.write(`${start}${[...above, ...lines].map((text) => `${text}\u001b[K\n`).join('')}\u001b[J`);
  };
  return {
    update: (event) => tree.apply(event, now().monotonic),
    tick: draw,
    finish() {
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
        // A line that isn't ended yet may go on; the next tick ends it if need be.
        if (!midLine) draw();
      },
    },
  };
}

/** What a window of so many lines shows: what is over moves up and stays, and where that is not enough, is left out. */
function fitWindow(
  all: readonly NodeLine[],
  height: number,
  hasEnded: boolean,
): { readonly standing: readonly NodeLine[]; readonly shown: readonly NodeLine[] } {
  let first = 0;
  while (all.length - first > height && isOver(all[first] as NodeLine, hasEnded)) first += 1;
  let shown = all.slice(first);
  const surplus = shown.length - height;
  if (surplus > 0) {
    const dropped = new Set(shown.filter((line) => isOver(line, hasEnded)).slice(0, surplus));
    shown = shown.filter((line) => !dropped.has(line)).slice(-height);
  }
  return { standing: all.slice(0, first), shown };
}

function isOver({ node }: NodeLine, hasEnded: boolean): boolean {
  if (hasEnded || node.over) return true;
  return isLeafAgent(node) && !node.inLoop && node.run.active === 0;
}
