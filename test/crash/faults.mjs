/** Kills this process at a chosen point. The process reports every point that it passes. */

import { Worker } from 'node:worker_threads';
import { dieNow } from './flows.mjs';
import { countStatements } from './statements.mjs';

/**
 * @param fault - `point` and `nth`: the process dies at the nth pass of that point. `delayUs`: it dies that much later, killed by
 *   another thread, because nothing else runs during a synchronous call. `statement`: it dies at the nth statement after the
 *   point. Undefined: it never dies
 * @param record - writes to the history; the pass is recorded before the kill
 */
export async function createFaults(fault, record) {
  if (!fault) return { arm() {}, hit() {} };
  const { point, nth, delayUs, statement } = fault;
  const statements = statement === undefined ? undefined : await countStatements();
  const killLater = delayUs === undefined ? undefined : await thread(delayUs);
  let armed = false;
  let passes = 0;
  return {
    /** Passes count from this call on. */
    arm() {
      armed = true;
    },
    hit(passed) {
      if (!armed || passed !== point) return;
      passes += 1;
      if (passes !== nth) return;
      record('point', fault);
      if (statements) statements.dieAt(statement);
      else if (killLater) killLater();
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

/** @returns a function that makes another thread kill the process after `delayUs` microseconds */
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
