/** Values and objects: the published suite for stores that are no part of a storage, and for stores that are opened again. */

import { describe, it } from 'vitest';
import { memoryKv, memoryObjects } from '../../src/adapters/storage/memory/data.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { dataSuite } from '../../src/conformance/data-suite.ts';
import { newFile } from './sqlite-files.ts';

dataSuite({ name: 'memoryKv', create: () => ({ kv: memoryKv() }), kinds: ['kv'], test: { describe, it } });
dataSuite({
  name: 'memoryObjects',
  create: () => ({ objects: memoryObjects() }),
  kinds: ['objects'],
  test: { describe, it },
});

let file: string;
const reopen = () => sqliteStorage({ path: file, synchronous: 'normal' });
const create = () => {
  file = newFile();
  return reopen();
};
dataSuite({ name: 'sqliteStorage', create, reopen, test: { describe, it } });
