/**
 * One process of the crash matrix: continues what the previous process left, starts new executions, and dies at its point, if
 * it has one. `node crash-child.mjs JSON`. Exit codes: 0 if it ended by itself, 3 if executions did not end in time.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { fastClock } from './fast-clock.mjs';
import { createFaults } from './faults.mjs';
import { createScripts, ENSEMBLES, INPUT } from './flows.mjs';
import { openHistory } from './history.mjs';
import { loadLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';
import { listUnended, readOne } from './read-store.mjs';
import { watchStorage } from './watched-storage.mjs';

/** The maximum time to complete what the previous process left. */
const TIMEOUT_MS = 12_000;
/** A short lease, so a dead worker is replaced soon. No other process runs that could consider a living one dead. */
const ENGINE = { leaseMs: 150, sweepMs: 30 };

const {
  store,
  historyPath,
  fault,
  phase = 'work',
  ensemble = 'line',
  count = 3,
  concurrency,
  ending,
} = JSON.parse(process.argv[2]);
const record = openHistory(historyPath);
const faults = await createFaults(fault, record);
const { createOrchestrator, embeddedEngine } = await loadLibrary();

if (phase === 'migration') faults.arm();
faults.hit('open');
const storage = watchStorage(await openStore(store), record, faults.hit);
const left = await recordStored();
const logger = createLogger();
const clock = fastClock(ensemble === 'suspending' ? 10 : 1);
const orchestrator = createOrchestrator({
  ensembles: ENSEMBLES,
  scripts: createScripts(record, faults.hit),
  storage,
  engine: embeddedEngine({
    ...ENGINE,
    leaseMs: ENGINE.leaseMs * clock.factor,
    ...(concurrency !== undefined && { concurrency }),
  }),
  clock,
  logger,
});

if (phase === 'recovery') faults.arm();
await orchestrator.ready();
if (concurrency !== 0) await untilEnded(left);
if (phase === 'work' || phase === 'close') faults.arm();
if (phase === 'close') await closeAtWork();
else await work();
await orchestrator.close();

/** Adds what is stored to the history, because nothing of it may happen again. @returns ids of unended executions */
async function recordStored() {
  const ids = await listUnended(storage);
  for (const id of ids) {
    const { steps } = await readOne(storage, await storage.executions.get(id));
    record('seen', { id, steps });
  }
  return ids;
}

async function untilEnded(ids) {
  const until = performance.now() + TIMEOUT_MS;
  let open = ids;
  while (open.length > 0) {
    const ended = new Set(await storage.executions.findEnded(open));
    open = open.filter((id) => !ended.has(id));
    if (open.length > 0 && performance.now() > until) {
      console.error(`not ended after ${TIMEOUT_MS} ms: ${open.join(' ')}`);
      process.exit(3);
    }
    if (open.length > 0) await sleep(5);
  }
}

async function work() {
  const begin = async () => {
    const handle = await orchestrator.start(ensemble, INPUT);
    record('accepted', { id: handle.id });
    return handle;
  };
  const numbers = Array.from({ length: count }, (_, i) => i);
  if (concurrency === 0) for (const _ of numbers) await begin();
  else if (ensemble === 'line') for (const _ of numbers) await (await begin()).result();
  else await Promise.all(numbers.map(async () => (await begin()).result()));
}

/** Closes while executions run, so that they are released. */
async function closeAtWork() {
  const handles = await Promise.all(Array.from({ length: count }, () => orchestrator.start(ensemble, INPUT)));
  for (const { id } of handles) record('accepted', { id });
  await sleep(ending.afterMs);
  faults.hit('close');
  await orchestrator.close({ grace: ending.graceMs });
}

function createLogger() {
  const at = (level) => (about, message) =>
    record('log', { level, message: message ?? about, error: about?.err?.message ?? about?.err });
  return { debug() {}, info() {}, warn: at('warn'), error: at('error') };
}
