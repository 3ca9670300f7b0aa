/** The lines of ends that are not counted yet. */

import { lineOfEnd } from '../../../../engine/events/tallies/end-line.ts';
import type { ExecutionEnd } from '../../../../engine/execution/stored-execution.ts';
import { IS_DRY } from '../../sql/tables/tallies-table.ts';
import type { SqlConnection } from '../drivers/driver.ts';
import { toLiteral } from '../tables/columns.ts';

export interface EndsTable {
  /** @param lines - as `lineOfEnd` writes them. In the transaction that stores the ends */
  put(lines: readonly string[]): void;
  /** Stores the line of an execution that has ended without having begun. In that transaction. @param id - as the column has it */
  putUnbegun(id: string, end: ExecutionEnd): void;
}

export function endsTable(connection: SqlConnection, namespace: string): EndsTable {
  const here = toLiteral(namespace);
  const select = connection.prepare(
    `SELECT ensemble, version, created_at, ${IS_DRY} AS dry FROM ensemble_executions WHERE namespace = ${here} AND id = ?`,
  );
  const insert = connection.prepare(`INSERT INTO ensemble_ends (namespace, body) VALUES (${here}, ?)`);
  const put = (lines: readonly string[]) => void insert.run([lines.join('\n')]);
  return {
    put,
    putUnbegun(id, end) {
      const [row] = select.all([id]);
      if (!row || row.dry === 1) return;
      const { ensemble, version, created_at: createdAt } = row;
      const about = { id, ensemble: ensemble as string, version: version as string, createdAt: createdAt as number };
      const line = lineOfEnd({ ...about, trigger: { type: 'call' } }, undefined, end);
      if (line !== undefined) put([line]);
    },
  };
}
