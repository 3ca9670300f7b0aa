/** Statements that write several rows in one call: a call costs about as much as the row that it writes. */

import type { SqlConnection, SqlStatement, SqlValue } from './connection.ts';

/** Rows of one call. */
export const MOST_ROWS = 16;

export interface SizedStatement {
  /** @param params - what its text names, of so many rows. @returns how many rows were written */
  run(rows: number, params: readonly SqlValue[]): number;
}

/**
 * @param width - columns of a row
 * @param text - the statement, around its rows: `column1` is the first column of each
 */
export function sizedStatement(
  connection: SqlConnection,
  width: number,
  text: (rows: string) => string,
): SizedStatement {
  const row = `(${Array.from({ length: width }, () => '?').join(', ')})`;
  const prepare = (rows: number) =>
    connection.prepare(text(`(VALUES ${Array.from({ length: rows }, () => row).join(', ')})`));
  // Every size is prepared when it comes up, but for the one that there is most of.
  const statements: SqlStatement[] = [];
  statements[MOST_ROWS] = prepare(MOST_ROWS);
  return {
    run(rows, params) {
      statements[rows] ??= prepare(rows);
      return statements[rows].run(params);
    },
  };
}
