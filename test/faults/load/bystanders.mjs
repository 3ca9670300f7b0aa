/**
 * A thread that watches a server during an attack, as the attack may block its own thread. It requests the health of the server
 * every 100 ms, runs a small ensemble every 500 ms, and reads the memory of the process.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const HEALTH_EVERY_MS = 100;
const RUN_EVERY_MS = 500;
const LATE_MS = 2_000;
/** A process that takes more is killed: more memory shows nothing new, and the machine has other work. */
const MAX_MB = 3_000;

/**
 * @param server - the result of `serve`
 * @returns `aim(server)` watches another process from then on; `stop()` returns `peakMb`, `blockMs` (the longest wait for an
 *   answer of the health route), `ok`, `late`, `failed` (runs), `killed` (the process took too much memory)
 */
export function startBystanders(server) {
  const aimed = ({ url, token, pid }) => ({ url, token, pid });
  const worker = new Worker(new URL(import.meta.url), { workerData: aimed(server) });
  return {
    aim: (next) => worker.postMessage(aimed(next)),
    async stop() {
      const seen = new Promise((resolve, reject) => {
        worker.once('message', resolve);
        worker.once('error', reject);
      });
      worker.postMessage('stop');
      const result = await seen;
      await worker.terminate();
      return result;
    },
  };
}

if (!isMainThread) {
  let target = workerData;
  const seen = { peakMb: 0, blockMs: 0, ok: 0, late: 0, failed: 0, killed: false };
  const agents = [new Agent({ keepAlive: true }), new Agent({ keepAlive: true })];
  let pending;
  let over = false;

  const ask = (agent, path, body) =>
    new Promise((resolve) => {
      const { url, token } = target;
      const headers = body && { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const asked = request(`${url}${path}`, { agent, method: body ? 'POST' : 'GET', headers }, (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode));
        response.on('error', () => resolve(undefined));
      });
      asked.on('error', () => resolve(undefined));
      asked.end(body);
    });
  const every = async (ms, work) => {
    while (!over) {
      const began = performance.now();
      await work();
      await sleep(Math.max(0, ms - (performance.now() - began)));
    }
  };
  const askHealth = async () => {
    const began = performance.now();
    pending = began;
    // A connection to a process that has ended fails at once, which is not a block.
    const status = await ask(agents[0], '/api/v1/health');
    if (status !== undefined) seen.blockMs = Math.max(seen.blockMs, performance.now() - began);
    pending = undefined;
  };
  const runGood = async () => {
    const began = performance.now();
    const status = await ask(agents[1], '/api/v1/execute/ensemble/good', '{"input":{"n":1}}');
    if (status !== 200) seen.failed += 1;
    else seen[performance.now() - began > LATE_MS ? 'late' : 'ok'] += 1;
  };
  const readMemory = () => {
    const mb = memoryOf(target.pid);
    seen.peakMb = Math.max(seen.peakMb, mb);
    if (mb < MAX_MB) return;
    seen.killed = true;
    try {
      process.kill(target.pid, 'SIGKILL');
    } catch {
      // The process has ended already.
    }
  };
  const memory = setInterval(readMemory, 50);
  parentPort.on('message', (message) => {
    if (message !== 'stop') {
      target = message;
      return;
    }
    over = true;
    clearInterval(memory);
    readMemory();
    if (pending !== undefined) seen.blockMs = Math.max(seen.blockMs, performance.now() - pending);
    parentPort.postMessage({ ...seen, peakMb: Math.round(seen.peakMb), blockMs: Math.round(seen.blockMs) });
  });
  void every(HEALTH_EVERY_MS, askHealth);
  void every(RUN_EVERY_MS, runGood);
}

/** @returns the peak memory of a process in MB where the system reports it, otherwise its current memory; 0 when it has ended */
function memoryOf(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  } catch {
    if (process.platform === 'linux') return 0;
  }
  try {
    return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024;
  } catch {
    return 0;
  }
}
