/** Values and objects: the published suite on memory storage and SQLite. */

import { describe, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { dataSuite } from '../../src/adapters/testing/data-suite.ts';

dataSuite({ name: 'memoryStorage', create: () => memoryStorage(), test: { describe, it } });
dataSuite({ name: 'sqliteStorage', create: () => sqliteStorage({ path: ':memory:' }), test: { describe, it } });
