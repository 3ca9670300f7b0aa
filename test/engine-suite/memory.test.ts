/** The engine passes the published suite on the memory storage, with synchronous and with asynchronous answers. */

import { describe, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { engineSuite } from '../../src/entries/conformance.ts';
import { laterStorage } from '../storage/later-storage.ts';

engineSuite({
  name: 'memoryStorage({ shared: true })',
  create() {
    const storage = memoryStorage({ shared: true });
    return { connect: () => storage };
  },
  workers: 'many',
  test: { describe, it },
});
engineSuite({
  name: 'memoryStorage({ shared: true }) with asynchronous answers',
  create() {
    const storage = laterStorage(memoryStorage({ shared: true }));
    return { connect: () => storage };
  },
  workers: 'many',
  test: { describe, it },
});
