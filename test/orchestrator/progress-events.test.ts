/** Events for programs that show the progress of an execution: the items of a loop, and the end of a wait. */

import { expect, it } from 'vitest';
import { createTestOrchestrator, manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator } from '../../src/index.ts';

it('reports the items of each loop and the end of each wait, with the position of the step', async () => {
  const { orchestrator, clock } = createTestOrchestrator({
    ensembles: [
      'name: e\nflow:\n  - foreach: [[1, 2], []]\n    as: list\n    steps: [{ foreach: "${list}", as: n, steps: [{ agent: a, operation: code, config: { script: a } }] }]\n  - sleep: 90s\n  - sleep: 0\n',
    ],
    scripts: { a: () => null },
  });
  const reported: unknown[] = [];
  orchestrator.on('foreach.started', ({ data: { key, items } }) => reported.push([key, items]));
  orchestrator.on('step.waiting', ({ data: { key, until } }) => reported.push([key, until]));
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
  // A run that was suspended for the wait reports nothing a second time.
  expect(reported).toEqual(first);
});

it('a sleep of no time is no wait, also when time passes between two looks at the clock', async () => {
  const clock = manualClock();
  let looks = 0;
  const orchestrator = createOrchestrator({
    ensembles: ['name: e\nflow:\n  - sleep: 0\n'],
    clock: { ...clock, now: () => clock.now() + looks++ },
  });
  const reported: string[] = [];
  orchestrator.on('*', ({ event }) => reported.push(event));
  expect((await orchestrator.execute('e')).status).toBe('completed');
  expect(reported).toEqual(['execution.started', 'execution.completed']);
});
