/** Executions that others started: where they stand, and how many one has led to. */

import type { Storage } from '../../../engine/ports/storage.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { SqlConnection } from './connection.ts';

/** What stands in the trigger too, so that an index can find it; all but children have nothing there. */
export const CHILDREN_MIGRATION = `
  ALTER TABLE ensemble_executions ADD COLUMN parent_id TEXT;
  ALTER TABLE ensemble_executions ADD COLUMN root_id TEXT;
  CREATE INDEX ensemble_executions_by_parent ON ensemble_executions (namespace, parent_id, id)
    WHERE parent_id IS NOT NULL;
  CREATE INDEX ensemble_executions_by_root ON ensemble_executions (namespace, root_id) WHERE root_id IS NOT NULL;
`;

export function childrenTable(connection: SqlConnection, namespace: string): Pick<Storage, 'countDescendants'> {
  const count = connection.prepare(`
    SELECT count(*) AS descendants FROM (
      SELECT 1 FROM ensemble_executions INDEXED BY ensemble_executions_by_root
      WHERE namespace = ${toLiteral(namespace)} AND root_id = ? LIMIT ?
    )`);
  return {
    countDescendants: (rootId, limit) => count.all([toTextColumn(rootId), limit])[0]?.descendants as number,
  };
}
