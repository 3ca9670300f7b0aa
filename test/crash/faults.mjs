/** The place where a process dies: told of every point that is passed, it ends the process at the chosen one. */

import { Worker } from 'node:worker_threads';
import { dieNow } from './flows.mjs';
import { countStatements } from './statements.mjs';

/**
 * @param fault - `point`, which `nth` pass of it, and how it dies: `at` once; `delayUs` later, by another thread, as nothing
 *   else runs during a synchronous call; at the `statement`th statement from there on. Undefined: it never dies
 * @param ledger - the pass is written there first
 */
export async function createFaults(fault, ledger) {
  if (!fault) return { arm() {}, hit() {} };
  const { point, nth, delayUs, statement } = fault;
  const statements = statement === undefined ? undefined : await countStatements();
  const strike = delayUs === undefined ? undefined : await thread(delayUs);
  let armed = false;
  let passes = 0;
  return {
    /** Passes count from here on. */
    arm() {
      armed = true;
    },
    hit(passed) {
      if (!armed || passed !== point) return;
      passes += 1;
      if (passes !== nth) return;
      ledger('point', fault);
      if (statements) statements.dieAt(statement);
      else if (strike) strike();
      else dieNow();
    },
  };
}

const THREAD = `
const { workerData: { shared, delayUs }, parentPort } = require('node:worker_threads');
const flag = new Int32Array(shared);
parentPort.postMessage('ready');
Atomics.wait(flag, 0, 0);
const end = process.hrtime.bigint() + BigInt(delayUs) * 1000n;
while (process.hrtime.bigint() < end);
process.kill(process.pid, 'SIGKILL');
`;

/** @returns makes another thread kill the process, so many microseconds later */
async function thread(delayUs) {
  const shared = new SharedArrayBuffer(4);
  const worker = new Worker(THREAD, { eval: true, workerData: { shared, delayUs } });
  await new Promise((resolve) => worker.once('message', resolve));
  worker.unref();
  const flag = new Int32Array(shared);
  return () => {
    Atomics.store(flag, 0, 1);
    Atomics.notify(flag, 0);
  };
}
