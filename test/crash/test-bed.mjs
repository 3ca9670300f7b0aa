/** The test bed of a scenario: a store, its history, processes that run executions, and an orchestrator that only queues. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { checkHistory } from './check-history.mjs';
import { COUNTED, createScripts, ENSEMBLES, INPUT } from './flows.mjs';
import { followHistory, openHistory } from './history.mjs';
import { loadLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';
import { historyOf } from './print-history.mjs';
import { start } from './processes.mjs';
import { listUnended, readStore } from './read-store.mjs';
import { watchStorage } from './watched-storage.mjs';

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));
/** Longer than any scenario takes. */
const WORKER_TIMEOUT_MS = 3_600_000;

/** @param at - a kind of store; @param folder - for the file of the history */
export async function createTestBed(at, name, folder) {
  const store = at.newStore();
  const historyPath = join(folder, `${name}-${at.kind}.history`);
  const record = openHistory(historyPath);
  const tail = followHistory(historyPath);
  const workers = new Set();
  const problems = [];
  const { createOrchestrator, embeddedEngine } = await loadLibrary();
  const storage = watchStorage(await openStore(store), record);
  const producer = createOrchestrator({
    ensembles: ENSEMBLES,
    scripts: createScripts(record),
    storage,
    engine: embeddedEngine({ concurrency: 0, queueLimit: 1_000_000 }),
  });

  const bed = {
    at,
    store,
    historyPath,
    record,
    tail,
    problems,
    workers,
    /** Starts a worker process. It leaves `workers` when it ends; `ended` resolves to its exit. */
    startWorker(engine = {}, more = {}) {
      const worker = start(WORKER, { store, historyPath, engine, ...more }, { timeoutMs: WORKER_TIMEOUT_MS });
      workers.add(worker);
      worker.pid = worker.child.pid;
      worker.ended.then(({ code, signal, errors }) => {
        workers.delete(worker);
        if (signal !== 'SIGKILL' && code !== 0) problems.push(`a worker ended with ${code ?? signal}\n${errors}`);
      });
      return worker;
    },
    untilReady: (worker) => tail.until('a worker is ready', 20_000, 0, (lines) => find(lines, 'ready', worker.pid)),
    /** Kills a worker and waits until it has exited. */
    async kill(worker) {
      worker.child.kill('SIGKILL');
      await worker.ended;
      record('killed', { target: worker.pid });
    },
    /** Queues an execution. @throws what the library throws; then the execution is not accepted */
    async queue(ensemble, input = INPUT) {
      const { id } = await producer.start(ensemble, input, { events: false });
      record('accepted', { id });
      return id;
    },
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
    /** Stops all workers and checks what is stored. @returns the figures */
    async check(expectations) {
      for (const { child } of workers) child.kill('SIGTERM');
      await Promise.all([...workers].map(({ ended }) => ended));
      const { broken, figures } = checkHistory(tail.lines(), await readStore(storage, COUNTED), expectations);
      problems.push(...broken);
      if (broken.length > 0) problems.push(...historyOf(tail.lines(), broken[0]));
      return figures;
    },
    async remove() {
      for (const worker of [...workers]) await bed.kill(worker);
      await producer.close();
      await at.remove(store);
    },
  };
  return bed;
}

const find = (lines, what, pid) => lines.find((line) => line.what === what && line.pid === pid);
