/** Opens a store with the built library. */

import { loadLibrary } from './library.mjs';

/** @param store - what `newStore()` of a kind of store returned */
export async function openStore({ kind, path, url, schema }) {
  const { sqliteStorage, postgresStorage } = await loadLibrary();
  return kind === 'sqlite' ? sqliteStorage({ path }) : postgresStorage({ url: url, schema });
}
