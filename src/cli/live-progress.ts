/** Progress on a terminal: a line an agent, drawn anew in place while the run goes on. */

import type { OrchestratorEvent } from '../engine/model/event.ts';
import { type AgentRow, createAgentRows } from './agent-rows.ts';
import { formatRow, type Instant } from './format-row.ts';
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
}

const HIDE_CURSOR = '\u001b[?25l';
/** Written when a run ends, however it ends. */
export const SHOW_CURSOR = '\u001b[?25h';
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control sequences
const COLOUR = /\u001b\[\d+m/g;

export function createLiveProgress({ stream, colors, now, nameWidth }: ProgressOptions): Progress {
  const agents = createAgentRows();
  // Rows that stand above the drawn block for good.
  const settled = new Set<AgentRow>();
  let drawn: readonly number[] = [];
  let midLine = false;
  let hidden = false;

  const erase = () => {
    const columns = stream.columns || 80;
    // A window that was made narrower has broken the lines since.
    const up = drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    drawn = [];
    return up > 0 ? `\u001b[${up}A\r\u001b[J` : '';
  };
  const draw = () => {
    const columns = stream.columns || 80;
    const height = Math.max(1, (stream.rows || 24) - 1);
    const style = { colors, nameWidth, columns: columns - 1 };
    const instant = now();
    const line = (row: AgentRow) => formatRow(row, instant, style);
    let rows = agents.rows.filter((row) => !settled.has(row));
    const standing: string[] = [];
    while (rows.length > height && rows[0]?.active === 0) {
      const row = rows.shift() as AgentRow;
      settled.add(row);
      standing.push(line(row));
    }
    rows = rows.slice(-height);
    const lines = rows.map(line);
    const start = erase() + (midLine ? '\n' : '') + (hidden ? '' : HIDE_CURSOR);
    midLine = false;
    hidden = true;
    drawn = lines.map((text) => textWidth(text.replace(COLOUR, '')));
    stream.write(start + [...standing, ...lines].map((text) => `${text}\n`).join(''));
  };
  return {
    update(event) {
      const row = agents.apply(event, now().monotonic);
      if (row) settled.delete(row);
    },
    tick: draw,
    finish() {
      agents.end(now().monotonic);
      draw();
      stream.write(SHOW_CURSOR);
      drawn = [];
      hidden = false;
    },
    foreign: {
      before() {
        const text = erase();
        if (text) stream.write(text);
      },
      after(text) {
        if (text !== '') midLine = !text.endsWith('\n');
        // A line that isn't ended yet may go on; the next tick ends it if need be.
        if (!midLine) draw();
      },
    },
  };
}
