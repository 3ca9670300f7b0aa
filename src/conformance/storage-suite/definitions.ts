/** Storage suite: definitions by their hash. */

import { EVERY_KIND, type StorageCase, same } from './context.ts';

const version = '0123456789abcdef0123456789abcdef';

export function definitionCases(it: StorageCase): void {
  it('get: returns undefined for an unknown hash', async (storage) => {
    for (const hash of [version, 'constructor', '']) same(await storage.definitions.get(hash), undefined, hash);
  });

  it('put: the definition and its needs come back unchanged', async (storage) => {
    const definition = {
      version,
      definition: { name: 'orders', flow: [{ agent: 'ä', config: { '': [null, 1.5] } }] },
      needs: ['operation:code', 'script:ä'],
    };
    await storage.definitions.put(definition);
    same(await storage.definitions.get(version), definition, 'definition');
  });

  it('put: does nothing if the hash is stored', async (storage) => {
    const first = { version, definition: { name: 'orders', flow: [] }, needs: [] };
    await storage.definitions.put(first);
    await storage.definitions.put({ version, definition: { name: 'others', flow: [] }, needs: ['x'] });
    same(await storage.definitions.get(version), first, 'definition');
  });

  it('put: takes concurrent calls with the same and with other definitions', async (storage) => {
    const make = (hash: string) => ({ version: hash, definition: { name: hash, flow: [] }, needs: [] });
    await Promise.all(Array.from({ length: 20 }, async (_, i) => storage.definitions.put(make(`hash-${i % 4}`))));
    for (const hash of ['hash-0', 'hash-3']) same(await storage.definitions.get(hash), make(hash), hash);
  });
}

/** For stores that outlive their handle. */
export function reopenedDefinitionCases(it: StorageCase): void {
  it('reopen: definitions and their needs are unchanged, and are not replaced', async (storage, reopen) => {
    const first = { version, definition: EVERY_KIND, needs: ['operation:code', 'script:ä'] };
    const second = { version: 'f'.repeat(32), definition: { name: 'others', flow: [] }, needs: [] };
    for (const definition of [first, second]) await storage.definitions.put(definition);
    const next = await reopen();
    await next.definitions.put({ ...second, version });
    for (const definition of [first, second]) {
      same(await next.definitions.get(definition.version), definition, definition.version);
    }
  });
}
