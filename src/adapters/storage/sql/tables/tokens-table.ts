/** API tokens, found by the digest of the presented token. */

import type { TokenStore } from '../../../../engine/access/token-store.port.ts';
import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { andThen } from '../../../../engine/base/maybe-promise.ts';
import { toJsonColumn } from '../columns.ts';
import type { SqlDialect } from '../dialect.ts';
import { readListedToken, readToken, toPlanColumn } from '../read-token.ts';

const TOKEN = ['id', 'digest', 'name', 'scopes', 'plan', 'last4', 'created_at', 'expires_at', 'last_used'];

export function tokensTable(dialect: SqlDialect, namespace: string): TokenStore {
  const tokens = dialect.table('tokens');
  const columns = TOKEN.join(', ');
  const insert = dialect.prepare(
    `INSERT INTO ${tokens} (namespace, ${columns}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
  );
  const select = dialect.prepare(`SELECT ${columns} FROM ${tokens} WHERE namespace = $1 AND digest = $2`, TOKEN);
  const selectOne = dialect.prepare(`SELECT ${columns} FROM ${tokens} WHERE namespace = $1 AND id = $2`, TOKEN);
  const selectAll = dialect.prepare(`SELECT ${columns} FROM ${tokens} WHERE namespace = $1 ORDER BY id`, TOKEN);
  const remove = dialect.prepare(`DELETE FROM ${tokens} WHERE namespace = $1 AND id = $2`);
  const touch = dialect.prepare(
    `UPDATE ${tokens} SET last_used = $3 WHERE namespace = $1 AND id = $2 AND coalesce(last_used, 0) < $3::bigint`,
  );
  const { text } = dialect;
  return {
    put({ id, digest, name, scopes, plan, last4, createdAt, expiresAt = null, lastUsed = null }) {
      const about = [text(name), toJsonColumn(scopes), toPlanColumn(plan), text(last4)];
      const params = [namespace, text(id), text(digest), ...about, createdAt, expiresAt, lastUsed];
      return andThen(insert.count(params), (count) => {
        if (count === 0) throw new OrchestratorError('CONFLICT', `token ${id} exists already`);
      });
    },
    findByDigest: (digest) => andThen(select.rows([namespace, text(digest)]), ([row]) => row && readToken(row)),
    get: (id) => andThen(selectOne.rows([namespace, text(id)]), ([row]) => row && readToken(row)),
    list: () => andThen(selectAll.rows([namespace]), (rows) => rows.map(readListedToken)),
    delete: (id) => andThen(remove.count([namespace, text(id)]), (count) => count > 0),
    touch: (id, lastUsed) => andThen(touch.count([namespace, text(id), lastUsed]), () => undefined),
  };
}
