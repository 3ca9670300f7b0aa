/** Tokens: the published suite for a store that is no part of a storage, and for a store that is opened again. */

import { describe, it } from 'vitest';
import { memoryTokens } from '../../src/adapters/storage/memory/tokens.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { tokenSuite } from '../../src/conformance/token-suite.ts';
import { newFile } from './sqlite-files.ts';

tokenSuite({ name: 'memoryTokens', create: () => ({ tokens: memoryTokens() }), test: { describe, it } });

let file: string;
const reopen = () => sqliteStorage({ path: file, synchronous: 'normal' });
const create = () => {
  file = newFile();
  return reopen();
};
tokenSuite({ name: 'sqliteStorage', create, reopen, test: { describe, it } });
