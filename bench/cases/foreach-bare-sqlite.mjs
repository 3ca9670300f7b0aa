/** Writes 10,000 records, like the items of a `foreach`, into a bare SQLite file: one commit for each turn of the event loop. */

import { ownFolder } from '../durable/own-folder.mjs';
import { setup as setupRaw } from './durable/raw-sqlite.mjs';

const RECORDS = 10_000;

/** @param concurrency - number of records that are awaited at the same time */
export async function setup([concurrency]) {
  const { put } = await setupRaw({ argument: 'group', folder: ownFolder() });
  let runs = 0;
  return {
    units: RECORDS,
    async run() {
      const execution = `exec_${runs++}`;
      let next = 0;
      const loop = async () => {
        while (next < RECORDS) await put(execution, next++, '1');
      };
      await Promise.all(Array.from({ length: Number(concurrency) }, loop));
    },
  };
}
