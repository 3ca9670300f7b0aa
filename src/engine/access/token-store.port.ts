/** The token store port: the part of a storage that keeps API tokens. */

import type { MaybePromise } from '../operation/operation.port.ts';
import type { StoredToken } from './token.ts';

export interface TokenStore {
  /** Stores a token. It is durable when the call returns. @throws CONFLICT if the id or the digest exists already: then nothing changes */
  put(token: StoredToken): MaybePromise<void>;
  /** The token with the digest of a presented value. Undefined if it is unknown or deleted. */
  findByDigest(digest: string): MaybePromise<StoredToken | undefined>;
  /** The token with an id. Undefined if it is unknown or deleted. */
  get(id: string): MaybePromise<StoredToken | undefined>;
  /** All tokens, oldest first. */
  list(): MaybePromise<readonly StoredToken[]>;
  /** Deletes a token. After the call returns, the token is never found again. @returns false if the id is unknown */
  delete(id: string): MaybePromise<boolean>;
  /** Records a use. Never decreases `lastUsed`. Does nothing for an unknown id. @param lastUsed - Unix ms */
  touch(id: string, lastUsed: number): MaybePromise<void>;
}
