/** Executions that others started: where they stand, and how many one has led to. */

import type { Storage } from '../../../engine/ports/storage.ts';
import { readNumber } from '../sql/columns.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { type SqlClient, statement } from './sql-client.ts';

/** What stands in the trigger too, so that an index can find it; all but children have nothing there. */
export const CHILDREN_MIGRATION = `
  ALTER TABLE $.executions ADD COLUMN parent_id text COLLATE "C", ADD COLUMN root_id text COLLATE "C";
  CREATE INDEX executions_by_parent ON $.executions (parent_id, namespace, id) WHERE parent_id IS NOT NULL;
  CREATE INDEX executions_by_root ON $.executions (root_id, namespace) WHERE root_id IS NOT NULL;
`;

export function childrenTable(
  client: SqlClient,
  { executions }: Names,
  namespace: string,
): Pick<Storage, 'countDescendants'> {
  const count = statement(
    `SELECT count(*) AS descendants
    FROM (SELECT 1 FROM ${executions} WHERE root_id = $2 AND namespace = $1 LIMIT $3::bigint) d`,
    ['descendants'],
  );
  return {
    async countDescendants(rootId, limit) {
      const [row = {}] = (await client.run(count, [namespace, toText(rootId), limit])).rows;
      return readNumber(row, 'descendants', 'a count');
    },
  };
}
