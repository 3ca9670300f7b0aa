/** Tokens: the published suite on memory storage and SQLite. */

import { describe, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { tokenSuite } from '../../src/adapters/testing/token-suite.ts';

tokenSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
tokenSuite({ name: 'sqliteStorage', create: () => sqliteStorage({ path: ':memory:' }), test: { describe, it } });
