/**
 * A process that works on a store until SIGTERM, then closes and ends by itself: `node worker.mjs JSON`. Everything that it
 * stores, does and logs is in the ledger.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { createScripts, ENSEMBLES } from './flows.mjs';
import { openLedger } from './ledger.mjs';
import { loadLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';
import { watchStorage } from './watched-storage.mjs';

const { store, ledgerPath, engine, graceMs = 5000 } = JSON.parse(process.argv[2]);
const ledger = openLedger(ledgerPath);
const { createOrchestrator, embeddedEngine } = await loadLibrary();
const log = (level) => (about, message) => {
  ledger('log', {
    level,
    message: message ?? about,
    ...(about?.err && { error: about.err.stack ?? String(about.err) }),
  });
};

const orchestrator = createOrchestrator({
  ensembles: ENSEMBLES,
  scripts: createScripts(ledger),
  storage: watchStorage(await openStore(store), ledger),
  engine: embeddedEngine(engine),
  logger: { debug() {}, info() {}, warn: log('warn'), error: log('error') },
});
// The process is to stay while there is nothing to do, and to end by itself once it is closed.
const stay = setInterval(() => {}, 60_000);
let stopping = false;
process.on('SIGTERM', async () => {
  stopping = true;
  ledger('stopping');
  clearInterval(stay);
  await orchestrator.close({ grace: graceMs });
  ledger('closed');
});

while (!stopping) {
  try {
    await orchestrator.ready();
    break;
  } catch (error) {
    ledger('log', { level: 'error', message: 'not ready', error: String(error) });
    await sleep(100);
  }
}
ledger('ready');
