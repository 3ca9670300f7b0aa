/** Exports many rows of a SQLite file to a folder, in a process with a small heap. Prints what it took as JSON. */

import { createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { memoryObjects } from '../../src/adapters/storage/memory/data.ts';
import type { ObjectStore } from '../../src/engine/storage/data.port.ts';
import { sqliteDatabase } from '../../src/entries/sqlite.ts';
import { createOrchestrator } from '../../src/index.ts';

const [folder = '', rows = ''] = process.argv.slice(2);

let peak = 0;
const measure = () => {
  global.gc?.();
  peak = Math.max(peak, process.memoryUsage().heapUsed);
};

/** Writes objects as files. Only what the test needs. */
const files: ObjectStore = {
  ...memoryObjects(),
  async putStream(key, { content }) {
    let size = 0;
    let parts = 0;
    async function* counted() {
      for await (const part of content) {
        size += part.byteLength;
        parts += 1;
        if (parts % 100 === 0) measure();
        yield part;
      }
    }
    const path = join(folder, key);
    await pipeline(counted, createWriteStream(`${path}.part`));
    await rename(`${path}.part`, path);
    return size;
  },
};

const query =
  'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ${input.rows}) ' +
  "SELECT x AS id, 'customer number ' || x AS name, x / 7.0 AS price FROM c";
const config = {
  type: 'sql',
  action: 'export',
  query,
  format: 'csv',
  exportOptions: { to: { binding: 'files', key: 'out.csv' } },
};
const orchestrator = createOrchestrator({
  ensembles: [{ name: 'e', flow: [{ agent: 'out', operation: 'storage', config, timeout: '10m' }] }],
  bindings: { sql: sqliteDatabase({ path: join(folder, 'data.db') }), files },
});
measure();
const before = peak;
const began = performance.now();
const { status, agents } = await orchestrator.execute('e', { rows: Number(rows) });
const ms = Math.round(performance.now() - began);
await orchestrator.close();
console.log(JSON.stringify({ status, output: agents[0]?.output ?? agents[0]?.error, ms, grown: peak - before }));
