/**
 * One of the two processes of `queue.mjs`: `enqueue` starts executions that it does not run, `work [backlog]` runs what is queued.
 * Times are read from the machine's monotonic clock, which is the same in all processes.
 */

import { inspect } from 'node:util';
import { importLibrary } from '../library.mjs';
import { openStore } from './library-store.mjs';

const IN_FLIGHT = 50;
const [role, backlog] = process.argv.slice(2);
const now = () => Number(process.hrtime.bigint()) / 1e6;
const tell = (what, more) => process.send({ what, ...more });

process.on('unhandledRejection', fail);
// The parent process has exited.
process.on('disconnect', () => process.exit());
try {
  await work();
} catch (error) {
  fail(error);
}

async function work() {
  const { createOrchestrator, embeddedEngine } = await importLibrary();
  const { storage, close } = await openStore('postgres', process.env.BENCH_POSTGRES);
  const counts = { begunAt: undefined, ended: 0 };
  const orchestrator = createOrchestrator({
    storage,
    engine: embeddedEngine(role === 'enqueue' ? { concurrency: 0 } : {}),
    ensembles: [
      {
        name: 'hop',
        flow: [{ agent: 's', operation: 'code', config: { script: 'step' }, input: '${input}' }],
        outputs: { number: '${s.output}' },
      },
    ],
    scripts: {
      step({ input }) {
        const at = now();
        if (role === 'enqueue') fail(new Error('the process that only queues ran a step'));
        counts.begunAt ??= at;
        if (!backlog) tell('begun', { number: input.number, at });
        return input.number;
      },
    },
  });
  const unsubscribe = orchestrator.on('execution.completed', ({ data }) => {
    counts.ended += 1;
    if (!backlog) tell('ended', { number: data.output.number });
    else if (counts.ended === Number(backlog)) tell('drained', { ms: now() - counts.begunAt });
  });
  const verbs = {
    async start({ number }) {
      await orchestrator.start('hop', { number });
      tell('started', { number, at: now() });
    },
    async enqueue({ number }) {
      const before = now();
      let next = 0;
      const loop = async () => {
        while (next < number) await orchestrator.start('hop', { number: next++ });
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, loop));
      tell('enqueued', { ms: now() - before });
    },
    async close() {
      unsubscribe();
      await orchestrator.close();
      await close();
      tell('closed');
      process.disconnect();
    },
  };
  process.on('message', (message) => verbs[message.what](message).catch(fail));
  await orchestrator.ready();
  tell('ready');
}

function fail(error) {
  process.send({ failed: error.code === 'UNAVAILABLE' ? error.message : inspect(error), code: error.code });
}
