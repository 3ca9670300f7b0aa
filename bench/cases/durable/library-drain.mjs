/** This library on Postgres, for a backlog: one process starts, then another one runs. */

import { openStore } from '../../durable/library-store.mjs';
import { importLibrary } from '../../library.mjs';

export async function setup({ postgres, keys, concurrency, job }) {
  const { createOrchestrator, embeddedEngine } = await importLibrary();
  const open = async (engine) => {
    const { storage, close } = await openStore('postgres', postgres);
    const orchestrator = createOrchestrator({
      storage,
      engine: embeddedEngine(engine),
      ensembles: [
        {
          name: 'drain',
          ...(keys > 0 && { concurrency: [{ limit: 1, key: '${input.key}' }] }),
          flow: [{ agent: 's', operation: 'code', config: { script: 'job' }, input: { key: '${input.key}' } }],
        },
      ],
      scripts: {
        async job({ input }) {
          await job(input.key);
          return null;
        },
      },
    });
    await orchestrator.ready();
    return {
      orchestrator,
      async close() {
        await orchestrator.close();
        await close();
      },
    };
  };
  const starter = await open({ concurrency: 0, queueLimit: 1_000_000 });
  let worker;
  return {
    enqueue: (key) => starter.orchestrator.start('drain', { key }),
    async work() {
      worker = await open({ concurrency });
    },
    async close() {
      await Promise.all([worker.close(), starter.close()]);
    },
  };
}
