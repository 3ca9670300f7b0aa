/** The part of a storage that keeps API tokens. */

import type { StoredToken } from '../model/token.ts';
import type { MaybePromise } from './operation.ts';

export interface TokenStore {
  /** Stored when it returns. @throws CONFLICT when the id or the digest is there already; nothing is changed then */
  put(token: StoredToken): MaybePromise<void>;
  /** By the digest of a presented value; undefined when unknown or deleted. */
  findByDigest(digest: string): MaybePromise<StoredToken | undefined>;
  /** All of them, oldest first. */
  list(): MaybePromise<readonly StoredToken[]>;
  /** From the moment it returns the token is never found again. @returns false when the id is unknown */
  delete(id: string): MaybePromise<boolean>;
  /** Notes a use. Never moves `lastUsed` back; does nothing for an unknown id. @param lastUsed - Unix ms */
  touch(id: string, lastUsed: number): MaybePromise<void>;
}
