/** OpenWorkflow on a SQLite file, which it opens with `node:sqlite`. */

import { join } from 'node:path';
import { BackendSqlite } from 'openworkflow/sqlite';
import { unavailable } from '../../durable/unavailable.mjs';
import { fiveSteps } from './five-steps.mjs';

const MODES = ['OFF', 'NORMAL', 'FULL', 'EXTRA'];

export async function setup({ folder, concurrency }) {
  await import('node:sqlite').catch(() => {
    throw unavailable('needs `node:sqlite`: Node.js 22.13 or newer');
  });
  const file = join(folder, 'openworkflow.db');
  const backend = BackendSqlite.connect(file);
  const mode = backend.db.prepare('PRAGMA synchronous').get();
  const note = `synchronous=${MODES[Object.values(mode)[0]]}`;
  return { ...(await fiveSteps(backend, concurrency)), file, note };
}
