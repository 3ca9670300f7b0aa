/** API tokens, found by the digest of the presented token. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { TokenStore } from '../../../engine/ports/token-store.ts';
import { toJsonColumn } from '../sql/columns.ts';
import { readListedToken, readToken, toPlanColumn } from '../sql/read-token.ts';
import { toTextColumn } from './columns.ts';
import type { SqlConnection } from './driver.ts';

const TOKEN = 'id, digest, name, scopes, plan, last4, created_at, expires_at, last_used';

export function tokensTable(connection: SqlConnection, namespace: string): TokenStore {
  const insert = connection.prepare(`
    INSERT INTO ensemble_tokens (namespace, ${TOKEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`);
  const select = connection.prepare(`SELECT ${TOKEN} FROM ensemble_tokens WHERE namespace = ? AND digest = ?`);
  const selectOne = connection.prepare(`SELECT ${TOKEN} FROM ensemble_tokens WHERE namespace = ? AND id = ?`);
  const selectAll = connection.prepare(`SELECT ${TOKEN} FROM ensemble_tokens WHERE namespace = ? ORDER BY id`);
  const remove = connection.prepare('DELETE FROM ensemble_tokens WHERE namespace = ? AND id = ?');
  const touch = connection.prepare(`
    UPDATE ensemble_tokens SET last_used = ? WHERE namespace = ? AND id = ? AND coalesce(last_used, 0) < ?`);
  return {
    put({ id, digest, name, scopes, plan, last4, createdAt, expiresAt = null, lastUsed = null }) {
      const about = [
        toTextColumn(name),
        toJsonColumn(scopes),
        toPlanColumn(plan),
        toTextColumn(last4),
        createdAt,
        expiresAt,
        lastUsed,
      ];
      if (insert.run([namespace, toTextColumn(id), toTextColumn(digest), ...about]) === 0) {
        throw new OrchestratorError('CONFLICT', `token ${id} exists already`);
      }
    },
    findByDigest(digest) {
      const [row] = select.all([namespace, toTextColumn(digest)]);
      return row && readToken(row);
    },
    get(id) {
      const [row] = selectOne.all([namespace, toTextColumn(id)]);
      return row && readToken(row);
    },
    list: () => selectAll.all([namespace]).map(readListedToken),
    delete: (id) => remove.run([namespace, toTextColumn(id)]) > 0,
    touch(id, lastUsed) {
      touch.run([lastUsed, namespace, toTextColumn(id), lastUsed]);
    },
  };
}
