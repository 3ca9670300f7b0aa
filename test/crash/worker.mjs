/**
 * A worker process: runs executions until SIGTERM, then closes and ends. `node worker.mjs JSON`. It records in the history
 * everything that it stores, does and logs.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { createScripts, ENSEMBLES } from './flows.mjs';
import { openHistory } from './history.mjs';
import { loadLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';
import { watchStorage } from './watched-storage.mjs';

const { store, historyPath, engine, graceMs = 5000 } = JSON.parse(process.argv[2]);
const record = openHistory(historyPath);
let orchestrator;
let stopping = false;
// Before the library is loaded: SIGTERM may come at any time.
process.on('SIGTERM', async () => {
  stopping = true;
  record('stopping');
  if (!orchestrator) process.exit(0);
  clearInterval(keepAlive);
  await orchestrator.close({ grace: graceMs });
  record('closed');
});
// Keeps the process alive while it has nothing to do. Once it is closed, it ends by itself.
const keepAlive = setInterval(() => {}, 60_000);

const { createOrchestrator, embeddedEngine } = await loadLibrary();
const log = (level) => (about, message) => {
  record('log', {
    level,
    message: message ?? about,
    ...(about?.err && { error: about.err.stack ?? String(about.err) }),
  });
};

orchestrator = createOrchestrator({
  ensembles: ENSEMBLES,
  scripts: createScripts(record),
  storage: watchStorage(await openStore(store), record),
  engine: embeddedEngine(engine),
  logger: { debug() {}, info() {}, warn: log('warn'), error: log('error') },
});

while (!stopping) {
  try {
    await orchestrator.ready();
    break;
  } catch (error) {
    record('log', { level: 'error', message: 'not ready', error: String(error) });
    await sleep(100);
  }
}
record('ready');
