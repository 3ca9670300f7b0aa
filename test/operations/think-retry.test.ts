/** `executions.retry` of an execution whose `think` agent failed: what is stored is used, and a stored failure is not met again. */

import { expect, it } from 'vitest';
import { createTestOrchestrator, fakeModel } from '../../src/entries/testing.ts';

it('a retried execution asks the model again after two stored answers that did not fit the schema', async () => {
  const fake = fakeModel(['no JSON', 'still no JSON', '{"n":7}']);
  const orchestrator = createTestOrchestrator({
    models: { fake },
    ensembles: [
      {
        name: 'e',
        flow: [
          {
            agent: 'a',
            operation: 'think',
            config: { model: 'm', prompt: 'How many?', schema: { type: 'object', required: ['n'] } },
          },
        ],
        outputs: { n: '${a.output.object.n}' },
      },
    ],
  });
  const failed = await orchestrator.execute('e');
  expect([failed.status, fake.requests.length]).toEqual(['failed', 2]);
  const { id } = await orchestrator.executions.retry(failed.id);
  const run = await orchestrator.result(id);
  expect([run.status, run.output, fake.requests.length]).toEqual(['completed', { n: 7 }, 3]);
  await orchestrator.close();
});
