/** API tokens, found by the digest of what is presented. */

import { isOrchestratorError, OrchestratorError } from '../../../engine/errors.ts';
import type { Plan, Scope, StoredToken } from '../../../engine/model/token.ts';
import type { TokenStore } from '../../../engine/ports/token-store.ts';
import { damaged, readJson, readNumber, readText, toJsonColumn, toTextColumn } from './columns.ts';
import type { SqlConnection, SqlRow } from './connection.ts';

const TOKEN = 'id, digest, name, scopes, plan, last4, created_at, expires_at, last_used';

export function tokensTable(connection: SqlConnection, namespace: string): TokenStore {
  const insert = connection.prepare(`
    INSERT INTO ensemble_tokens (namespace, ${TOKEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`);
  const select = connection.prepare(`SELECT ${TOKEN} FROM ensemble_tokens WHERE namespace = ? AND digest = ?`);
  const selectAll = connection.prepare(`SELECT ${TOKEN} FROM ensemble_tokens WHERE namespace = ? ORDER BY id`);
  const remove = connection.prepare('DELETE FROM ensemble_tokens WHERE namespace = ? AND id = ?');
  const touch = connection.prepare(`
    UPDATE ensemble_tokens SET last_used = ? WHERE namespace = ? AND id = ? AND coalesce(last_used, 0) < ?`);
  return {
    put({ id, digest, name, scopes, plan, last4, createdAt, expiresAt = null, lastUsed = null }) {
      const about = [
        toTextColumn(name),
        toJsonColumn(scopes),
        plan,
        toTextColumn(last4),
        createdAt,
        expiresAt,
        lastUsed,
      ];
      if (insert.run([namespace, toTextColumn(id), toTextColumn(digest), ...about]) === 0) {
        throw new OrchestratorError('CONFLICT', `token ${id} is stored already`);
      }
    },
    findByDigest(digest) {
      const [row] = select.all([namespace, toTextColumn(digest)]);
      return row && readToken(row);
    },
    list: () => selectAll.all([namespace]).map(readListed),
    delete: (id) => remove.run([namespace, toTextColumn(id)]) > 0,
    touch(id, lastUsed) {
      touch.run([lastUsed, namespace, toTextColumn(id), lastUsed]);
    },
  };
}

/** One damaged row must not hide the others, nor itself, or it could not be revoked: it is listed as one that may do nothing. */
function readListed(row: SqlRow): StoredToken {
  try {
    return readToken(row);
  } catch (error) {
    if (!isOrchestratorError(error, 'INTERNAL')) throw error;
    const { id, digest, last4, created_at: createdAt } = row;
    const what = { id: String(id), digest: String(digest), last4: String(last4), createdAt: Number(createdAt) || 0 };
    return { ...what, name: '(damaged row)', scopes: [], plan: 'free' };
  }
}

function readToken(row: SqlRow): StoredToken {
  const name = `token ${String(row.id)}`;
  const scopes = readJson(row, 'scopes', name);
  if (!Array.isArray(scopes)) throw damaged(name, 'scopes');
  return {
    id: readText(row, 'id', name),
    name: readText(row, 'name', name),
    scopes: scopes as readonly Scope[],
    plan: readText(row, 'plan', name) as Plan,
    digest: readText(row, 'digest', name),
    last4: readText(row, 'last4', name),
    createdAt: readNumber(row, 'created_at', name),
    ...(row.expires_at !== null && { expiresAt: readNumber(row, 'expires_at', name) }),
    ...(row.last_used !== null && { lastUsed: readNumber(row, 'last_used', name) }),
  };
}
