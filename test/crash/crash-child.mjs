/**
 * One process of the crash matrix: goes on with what the one before it left, begins new executions, and dies at its point, if it
 * was given one. `node crash-child.mjs JSON`. Exit codes: 0 when it ended by itself, 3 when executions did not end in time.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { fastClock } from './fast-clock.mjs';
import { createFaults } from './faults.mjs';
import { createScripts, ENSEMBLES, INPUT } from './flows.mjs';
import { openLedger } from './ledger.mjs';
import { loadLibrary } from './library.mjs';
import { openStore } from './open-store.mjs';
import { listUnended, readOne } from './read-store.mjs';
import { watchStorage } from './watched-storage.mjs';

/** How long what was left behind may take. */
const PATIENCE_MS = 12_000;
/** A dead owner is replaced soon; nobody else is there to take a living one for dead. */
const ENGINE = { leaseMs: 150, sweepMs: 30 };

const {
  store,
  ledgerPath,
  fault,
  phase = 'work',
  ensemble = 'line',
  count = 3,
  concurrency,
  ending,
} = JSON.parse(process.argv[2]);
const ledger = openLedger(ledgerPath);
const faults = await createFaults(fault, ledger);
const { createOrchestrator, embeddedEngine } = await loadLibrary();

if (phase === 'migration') faults.arm();
faults.hit('open');
const storage = watchStorage(await openStore(store), ledger, faults.hit);
const left = await look();
const logger = createLogger();
const clock = fastClock(ensemble === 'patient' ? 10 : 1);
const orchestrator = createOrchestrator({
  ensembles: ENSEMBLES,
  scripts: createScripts(ledger, faults.hit),
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

/** What is stored is told first: nothing of it may happen again. @returns what has not ended */
async function look() {
  const ids = await listUnended(storage);
  for (const id of ids) {
    const { steps } = await readOne(storage, await storage.getExecution(id));
    ledger('seen', { id, steps });
  }
  return ids;
}

async function untilEnded(ids) {
  const until = performance.now() + PATIENCE_MS;
  let open = ids;
  while (open.length > 0) {
    const ended = new Set(await storage.findEnded(open));
    open = open.filter((id) => !ended.has(id));
    if (open.length > 0 && performance.now() > until) {
      console.error(`not ended after ${PATIENCE_MS} ms: ${open.join(' ')}`);
      process.exit(3);
    }
    if (open.length > 0) await sleep(5);
  }
}

async function work() {
  const begin = async () => {
    const handle = await orchestrator.start(ensemble, INPUT);
    ledger('accepted', { id: handle.id });
    return handle;
  };
  const numbers = Array.from({ length: count }, (_, i) => i);
  if (concurrency === 0) for (const _ of numbers) await begin();
  else if (ensemble === 'line') for (const _ of numbers) await (await begin()).result();
  else await Promise.all(numbers.map(async () => (await begin()).result()));
}

/** Stops in the midst of it: what runs is given back. */
async function closeAtWork() {
  const handles = await Promise.all(Array.from({ length: count }, () => orchestrator.start(ensemble, INPUT)));
  for (const { id } of handles) ledger('accepted', { id });
  await sleep(ending.afterMs);
  faults.hit('close');
  await orchestrator.close({ grace: ending.graceMs });
}

function createLogger() {
  const at = (level) => (about, message) =>
    ledger('log', { level, message: message ?? about, error: about?.err?.message ?? about?.err });
  return { debug() {}, info() {}, warn: at('warn'), error: at('error') };
}
