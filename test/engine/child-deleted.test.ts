/** A child execution that was deleted before its parent read its end: the signal of the end counts, and the child does not run again. */

import { expect, it } from 'vitest';
import { createOrchestrator, embeddedEngine, memoryStorage } from '../../src/index.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';

it('a child that ended and was deleted has signalled its end to its parent, and is not started again', async () => {
  const inner = memoryStorage();
  let deleted = '';
  const storage = changeStorage(inner, {
    executions: { get: (id) => (id === deleted ? undefined : inner.executions.get(id)) },
  });
  let ran = 0;
  const orchestrator = createOrchestrator({
    storage,
    // One place: the parent is suspended while the child has it.
    engine: embeddedEngine({ concurrency: 1 }),
    ensembles: [
      { name: 'parent', flow: [{ ensemble: 'child' }], outputs: { got: '${child.output.ran}' } },
      {
        name: 'child',
        flow: [{ agent: 'count', operation: 'code', config: { script: 'count' } }],
        outputs: { ran: '${count.output}' },
      },
    ],
    scripts: {
      count({ execution }) {
        deleted = execution.id;
        ran += 1;
        return ran;
      },
    },
  });
  const run = await orchestrator.execute('parent');
  expect(run).toMatchObject({ status: 'completed', output: { got: 1 } });
  expect(ran).toBe(1);
  await orchestrator.close();
});
