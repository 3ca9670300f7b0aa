/** Opens a store by the library as it was built. */

import { loadLibrary } from './library.mjs';

/** @param store - what `place()` of a kind of store gave */
export async function openStore({ kind, path, url, schema }) {
  const { sqliteStorage, postgresStorage } = await loadLibrary();
  return kind === 'sqlite' ? sqliteStorage({ path }) : postgresStorage({ connectionString: url, schema });
}
