/** The API tokens of the memory storage. */

import type { StoredToken } from '../../../engine/access/token.ts';
import type { TokenStore } from '../../../engine/access/token-store.port.ts';
import { OrchestratorError } from '../../../engine/base/errors.ts';

/** Tokens in memory. */
export function memoryTokens(): TokenStore {
  const byId = new Map<string, StoredToken>();
  const idByDigest = new Map<string, string>();
  return {
    put(token) {
      if (byId.has(token.id) || idByDigest.has(token.digest)) {
        throw new OrchestratorError('CONFLICT', `token ${token.id} exists already`);
      }
      byId.set(token.id, token);
      idByDigest.set(token.digest, token.id);
    },
    findByDigest: (digest) => byId.get(idByDigest.get(digest) ?? ''),
    get: (id) => byId.get(id),
    list: () => [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    delete(id) {
      const token = byId.get(id);
      if (!token) return false;
      idByDigest.delete(token.digest);
      return byId.delete(id);
    },
    touch(id, lastUsed) {
      const token = byId.get(id);
      if (token && lastUsed > (token.lastUsed ?? 0)) byId.set(id, { ...token, lastUsed });
    },
  };
}
