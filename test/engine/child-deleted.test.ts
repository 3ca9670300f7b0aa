/** A child whose record was deleted before its parent came to look: its end is what it told, and it does not run again. */

import { expect, it } from 'vitest';
import type { Storage } from '../../src/engine/ports/storage.ts';
import { createOrchestrator, embeddedEngine, memoryStorage } from '../../src/index.ts';

it('issue 5, item 4: a child that ended and was deleted since has told its parent of its end, and is not started again', async () => {
  const inner = memoryStorage();
  let deleted = '';
  const storage: Storage = {
    ...inner,
    getExecution: (id) => (id === deleted ? undefined : inner.getExecution(id)),
  };
  let ran = 0;
  const orchestrator = createOrchestrator({
    storage,
    // One place: the parent gives its own up while the child has it.
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
