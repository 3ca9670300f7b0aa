/** What a scenario plays on: a store, its ledger, processes that work on it, and one that only queues. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { checkLedger } from './check-ledger.mjs';
import { COUNTED, createScripts, ENSEMBLES, INPUT } from './flows.mjs';
import { followLedger, openLedger } from './ledger.mjs';
import { loadLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';
import { start } from './processes.mjs';
import { listUnended, readStore } from './read-store.mjs';
import { tellStory } from './tell-story.mjs';
import { watchStorage } from './watched-storage.mjs';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
/** No scenario takes so long. */
const WORKER_TIMEOUT_MS = 3_600_000;

/** @param at - a kind of store; @param folder - where the ledger may stand */
export async function createStage(at, name, folder) {
  const store = at.place();
  const ledgerPath = join(folder, `${name}-${at.kind}.ledger`);
  const ledger = openLedger(ledgerPath);
  const tail = followLedger(ledgerPath);
  const workers = new Set();
  const problems = [];
  const { createOrchestrator, embeddedEngine } = await loadLibrary();
  const storage = watchStorage(await openStore(store), ledger);
  const producer = createOrchestrator({
    ensembles: ENSEMBLES,
    scripts: createScripts(ledger),
    storage,
    engine: embeddedEngine({ concurrency: 0, queueLimit: 1_000_000 }),
  });

  const stage = {
    at,
    store,
    ledgerPath,
    ledger,
    tail,
    problems,
    workers,
    /** Starts a process that works. It is forgotten when it ends; `ended` tells how. */
    startWorker(engine = {}, more = {}) {
      const worker = start(WORKER, { store, ledgerPath, engine, ...more }, { timeoutMs: WORKER_TIMEOUT_MS });
      workers.add(worker);
      worker.pid = worker.child.pid;
      worker.ended.then(({ code, signal, errors }) => {
        workers.delete(worker);
        if (signal !== 'SIGKILL' && code !== 0) problems.push(`a worker ended with ${code ?? signal}\n${errors}`);
      });
      return worker;
    },
    untilReady: (worker) => tail.until('a worker is ready', 20_000, 0, (lines) => find(lines, 'ready', worker.pid)),
    /** Kills a worker. @returns when it has gone */
    async kill(worker) {
      worker.child.kill('SIGKILL');
      await worker.ended;
      ledger('killed', { target: worker.pid });
    },
    /** Queues an execution. @throws what the library throws: then it is not accepted */
    async queue(ensemble, input = INPUT) {
      const { id } = await producer.start(ensemble, input, { events: false });
      ledger('accepted', { id });
      return id;
    },
    unended: () => listUnended(storage),
    countUnended: async () => (await listUnended(storage)).length,
    async untilEnded(timeoutMs, ids) {
      const until = performance.now() + timeoutMs;
      for (;;) {
        const open = await listUnended(storage);
        const left = ids ? open.filter((id) => ids.includes(id)) : open;
        if (left.length === 0) return;
        if (performance.now() > until)
          throw new Error(`${left.length} not ended within ${timeoutMs} ms: ${left.slice(0, 5)}`);
        await sleep(ids ? 20 : 100);
      }
    },
    /** Stops all workers and looks at what is stored. @returns the figures */
    async check(expectations) {
      for (const { child } of workers) child.kill('SIGTERM');
      await Promise.all([...workers].map(({ ended }) => ended));
      const { broken, figures } = checkLedger(tail.lines(), await readStore(storage, COUNTED), expectations);
      problems.push(...broken);
      if (broken.length > 0) problems.push(...tellStory(tail.lines(), broken[0]));
      return figures;
    },
    async remove() {
      for (const worker of [...workers]) await stage.kill(worker);
      await producer.close();
      await at.remove(store);
    },
  };
  return stage;
}

const find = (lines, what, pid) => lines.find((line) => line.what === what && line.pid === pid);
