/** Jobs that move, cancel, retry and delete many executions while the process that works on them is killed: each execution is changed once, and counted once. */

import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openStore } from '../open-store.mjs';
import { start } from '../processes.mjs';
import { listExecutions } from '../read-store.mjs';

const WORKER = fileURLToPath(new URL('../job-worker.mjs', import.meta.url));
/** The lease of a job, half a minute, is a second and a half. */
const FACTOR = 20;
const TIMEOUT_MS = 600_000;
const KILLS = 2;

export const jobs = {
  name: 'jobs',
  about: 'jobs while their process is killed',
  stores: ['sqlite', 'postgres'],
  async run(bed, { executions: count, random }) {
    const { store, problems } = bed;
    const storage = await openStore(store);
    const live = (about) => start(WORKER, { store, factor: FACTOR, ...about }, { timeoutMs: TIMEOUT_MS });
    const newest = async () => (await storage.documents.list('job', { now: 0, limit: 10 })).at(-1)?.value;
    const expect = (what, found, wanted) => {
      const [is, ought] = [found, wanted].map((one) => JSON.stringify(one));
      if (is !== ought) problems.push(`${what}: ${is}, not ${ought}`);
    };
    let kills = 0;
    /** @returns the job, once it has ended */
    const work = async (job) => {
      const until = performance.now() + TIMEOUT_MS;
      for (let worker = live({ job }), left = KILLS; ; ) {
        const killAt = left > 0 ? performance.now() + random.from(800, 2000) : until;
        const isAtWork = ({ action, status } = {}) => action !== job.action || status === 'running';
        while (performance.now() < killAt && isAtWork(await newest())) await sleep(50);
        worker.child.kill('SIGKILL');
        const { errors } = await worker.ended;
        if (errors) problems.push(errors);
        const found = await newest();
        if (!isAtWork(found)) return found;
        if (left === 0) throw new Error(`${job.action} has not ended: ${JSON.stringify(found)}`);
        worker = live(found?.action === job.action ? {} : { job });
        left -= 1;
        kills += 1;
      }
    };
    const countAll = async (filter) => {
      const counts = {};
      const retried = new Set();
      for await (const { status, retryOf } of listExecutions(storage, filter)) {
        counts[status] = (counts[status] ?? 0) + 1;
        if (retryOf) retried.add(retryOf);
      }
      return { counts, retried: retried.size };
    };
    const summary = ({ seen, changed, unchanged, failed }) => ({ seen, sum: changed + unchanged, failed });

    expect('the process that starts them', (await live({ count }).ended).code, 0);
    const all = { seen: count, sum: count, failed: 0 };
    expect('move', summary(await work({ action: 'move', filter: { ensemble: 'sleeper' }, to: 'latest' })), all);
    const moved = {};
    for await (const { version, moves = [] } of listExecutions(storage, { ensemble: 'sleeper' })) {
      const about = `${moves.length} moves to ${moves[0]?.to === version ? 'its definition' : 'another one'}`;
      moved[about] = (moved[about] ?? 0) + 1;
    }
    expect('moved executions', moved, { '1 moves to its definition': count });
    expect('cancel', summary(await work({ action: 'cancel', filter: { ensemble: 'sleeper' } })), all);
    expect('retry', summary(await work({ action: 'retry', filter: { status: 'failed' } })), all);
    // What the last process had accepted is run by the next one.
    const last = live({});
    while (await isActive(storage)) await sleep(100);
    last.child.kill('SIGKILL');
    await last.ended;
    expect('delete', summary(await work({ action: 'delete', filter: { ensemble: 'sleeper' } })).failed, 0);
    const sleepers = await countAll({ ensemble: 'sleeper' });
    expect('executions that sleep', sleepers, { counts: {}, retried: 0 });
    expect('payments', await countAll({ ensemble: 'pay' }), {
      counts: { completed: count, failed: count },
      retried: count,
    });
    await storage.close();
    return `${kills} kills, ${count * 2} executions, each changed and counted once`;
  },
};

async function isActive(storage) {
  for (const status of ['queued', 'running', 'waiting'])
    if ((await storage.executions.list({ status, limit: 1 })).length > 0) return true;
  return false;
}
