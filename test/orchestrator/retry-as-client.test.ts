/** A retry in a process that runs nothing, such as the command line on a store: other processes know what its definition starts. */

import { expect, it, onTestFinished } from 'vitest';
import { createOrchestrator, embeddedEngine, memoryStorage } from '../../src/index.ts';

const KID = { name: 'kid', flow: [{ wait: 'go', timeout: 1 }] };
const PARENT = { name: 'parent', flow: [{ ensemble: 'kid' }] };

async function failedParent() {
  const storage = memoryStorage({ shared: true });
  const server = createOrchestrator({ ensembles: [KID, PARENT], storage });
  onTestFinished(() => server.close({ grace: 0 }));
  const failed = await server.execute('parent', {});
  expect(failed.status).toBe('failed');
  return { storage, failed };
}

it('a process that runs nothing queues a retry of an execution that starts another ensemble', async () => {
  const { storage, failed } = await failedParent();
  const client = createOrchestrator({ storage, schedules: false, engine: embeddedEngine({ concurrency: 0 }) });
  const { id } = await client.executions.retry(failed.id);
  const { retryOf, ensemble, version } = await client.executions.get(id);
  expect({ retryOf, ensemble, version }).toEqual({ retryOf: failed.id, ensemble: 'parent', version: failed.version });
});

it('a process that could run the retry refuses it without the ensemble that it starts', async () => {
  const { storage, failed } = await failedParent();
  const other = createOrchestrator({ ensembles: [{ ...KID, name: 'other' }], storage });
  onTestFinished(() => other.close({ grace: 0 }));
  await expect(other.executions.retry(failed.id)).rejects.toMatchObject({
    code: 'NOT_CONFIGURED',
    message: expect.stringContaining('there is no ensemble `kid`'),
  });
});
