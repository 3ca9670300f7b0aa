/** A token as a storage keeps it. */

import type { StoredToken } from '../../src/engine/access/token.ts';

export const TOKEN: StoredToken = {
  id: 'tok_1',
  name: 'a',
  scopes: [],
  plan: 'free',
  digest: 'd',
  last4: 'abcd',
  createdAt: 1,
};
