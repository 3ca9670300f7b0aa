/** The engine on the memory storage passes the published suite, whether the storage answers at once or later. */

import { describe, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { engineSuite } from '../../src/testing.ts';
import { laterStorage } from '../storage/later-storage.ts';

engineSuite({
  name: 'memoryStorage({ shared: true })',
  create() {
    const storage = memoryStorage({ shared: true });
    return { connect: () => storage };
  },
  owners: 'many',
  test: { describe, it },
});
engineSuite({
  name: 'memoryStorage({ shared: true }) behind promises',
  create() {
    const storage = laterStorage(memoryStorage({ shared: true }));
    return { connect: () => storage };
  },
  owners: 'many',
  test: { describe, it },
});
