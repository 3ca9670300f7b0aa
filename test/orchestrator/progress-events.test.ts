/** Events for those who show a run while it goes on: what a loop has to do, and how long a wait takes. */

import { expect, it } from 'vitest';
import { createTestOrchestrator } from '../../src/testing.ts';

it('tells the items of each loop and the instant of each wait, by the place of the step', async () => {
  const { orchestrator, clock } = createTestOrchestrator({
    ensembles: [
      'name: e\nflow:\n  - foreach: [[1, 2], []]\n    as: list\n    steps: [{ foreach: "${list}", as: n, steps: [{ agent: a, operation: code, config: { script: a } }] }]\n  - sleep: 90s\n  - sleep: 0\n',
    ],
    scripts: { a: () => null },
  });
  const told: unknown[] = [];
  orchestrator.on('foreach.started', ({ data: { key, items } }) => told.push([key, items]));
  orchestrator.on('step.waiting', ({ data: { key, until } }) => told.push([key, until]));
  const begin = clock.now();
  const run = orchestrator.execute('e');
  await clock.advance(90_000);
  expect((await run).status).toBe('completed');
  const first = [
    ['flow[0]', 2],
    ['flow[0].foreach[0].steps[0]', 2],
    ['flow[0].foreach[1].steps[0]', 0],
    ['flow[1]', begin + 90_000],
  ];
  expect(told.slice(0, 4)).toEqual(first);
  // A run that was given up for the wait walks its loops again; it waits no second time.
  for (const again of told.slice(4)) expect(first.slice(0, 3)).toContainEqual(again);
});
