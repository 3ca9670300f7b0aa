/** API tokens, found by the digest of the presented token. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { TokenStore } from '../../../engine/ports/token-store.ts';
import { toJsonColumn } from '../sql/columns.ts';
import { readListedToken, readToken, toPlanColumn } from '../sql/read-token.ts';
import { toTextColumn } from './columns.ts';
import type { Names } from './names.ts';
import { type SqlClient, statement } from './driver.ts';

const TOKEN = ['id', 'digest', 'name', 'scopes', 'plan', 'last4', 'created_at', 'expires_at', 'last_used'];

export function tokensTable(client: SqlClient, { tokens }: Names, namespace: string): TokenStore {
  const columns = TOKEN.join(', ');
  const insert = statement(
    `INSERT INTO ${tokens} (namespace, ${columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
  );
  const select = statement(`SELECT ${columns} FROM ${tokens} WHERE namespace = $1 AND digest = $2`, TOKEN);
  const selectOne = statement(`SELECT ${columns} FROM ${tokens} WHERE namespace = $1 AND id = $2`, TOKEN);
  const selectAll = statement(`SELECT ${columns} FROM ${tokens} WHERE namespace = $1 ORDER BY id`, TOKEN);
  const remove = statement(`DELETE FROM ${tokens} WHERE namespace = $1 AND id = $2`);
  const touch = statement(
    `UPDATE ${tokens} SET last_used = $3 WHERE namespace = $1 AND id = $2 AND coalesce(last_used, 0) < $3::bigint`,
  );
  return {
    async put({ id, digest, name, scopes, plan, last4, createdAt, expiresAt = null, lastUsed = null }) {
      const about = [toTextColumn(name), toJsonColumn(scopes), toPlanColumn(plan), toTextColumn(last4)];
      const params = [namespace, toTextColumn(id), toTextColumn(digest), ...about, createdAt, expiresAt, lastUsed];
      if ((await client.run(insert, params)).count === 0)
        throw new OrchestratorError('CONFLICT', `token ${id} exists already`);
    },
    async findByDigest(digest) {
      const [row] = (await client.run(select, [namespace, toTextColumn(digest)])).rows;
      return row && readToken(row);
    },
    async get(id) {
      const [row] = (await client.run(selectOne, [namespace, toTextColumn(id)])).rows;
      return row && readToken(row);
    },
    list: async () => (await client.run(selectAll, [namespace])).rows.map(readListedToken),
    delete: async (id) => (await client.run(remove, [namespace, toTextColumn(id)])).count > 0,
    async touch(id, lastUsed) {
      await client.run(touch, [namespace, toTextColumn(id), lastUsed]);
    },
  };
}
