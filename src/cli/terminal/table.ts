/** Rows as aligned columns that fit a terminal. */

import { fitText, oneLine, textWidth } from './text.ts';

export interface Column {
  readonly title: string;
  /** For names and lists: the smallest width to which the column may be cut in a narrow terminal. */
  readonly shrinkTo?: number;
}

const GAP = 2;

/**
 * @param rows - one text for each column; this function makes them safe for a terminal
 * @param width - of the terminal, in columns; undefined (a file, a pipe): nothing is cut
 * @returns lines, each with a line end
 */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number | undefined,
): string {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => row.map(oneLine))];
  const widths = columns.map((_, i) => Math.max(...cells.map((row) => textWidth(row[i] ?? ''))));
  if (width !== undefined) shrink(widths, columns, width);
  return cells
    .map((row) =>
      row
        .map((cell, i) => fitText(cell, widths[i] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
    .concat('\n');
}

// Narrows the widest of the columns that may be cut, until the row fits or all have their smallest width.
function shrink(widths: number[], columns: readonly Column[], width: number): void {
  const total = () => widths.reduce((sum, one) => sum + one, GAP * (widths.length - 1));
  while (total() > width) {
    let widest = -1;
    for (const [i, { shrinkTo }] of columns.entries()) {
      const own = widths[i] as number;
      if (shrinkTo !== undefined && own > shrinkTo && own > (widths[widest] ?? 0)) widest = i;
    }
    if (widest < 0) return;
    widths[widest] = (widths[widest] as number) - 1;
  }
}

/** The width of the terminal of stdout; without a terminal, the value of `COLUMNS`, or undefined. */
export function terminalWidth({ stdout, env }: Pick<NodeJS.Process, 'stdout' | 'env'>): number | undefined {
  if (stdout.isTTY && stdout.columns > 0) return stdout.columns;
  return /^[1-9]\d{0,3}$/.test(env.COLUMNS ?? '') ? Number(env.COLUMNS) : undefined;
}
