/** The text of `ensemble execution show`, on a terminal and in a pipe. */

import { expect, it } from 'vitest';
import { describeExecution } from '../../src/cli/progress/show-execution.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';

const NAME = 'charge-the-card-of-the-customer-once';

it('cuts long keys and names on a terminal, and nothing in a pipe', async () => {
  const steps = [{ agent: NAME, operation: 'code', config: { script: 'one' } }];
  const inner = { foreach: '${[1]}', as: 'inner', steps };
  const { orchestrator } = createTestOrchestrator({
    ensembles: [{ name: 'e', flow: [{ foreach: '${[1]}', steps: [inner] }] }],
    scripts: { one: () => 'x'.repeat(200) },
  });
  const record = await orchestrator.execute('e');
  const { steps: listed } = await orchestrator.executions.steps(record.id);
  const key = 'flow[0].foreach[0].steps[0].foreach[0].steps[0]';
  const shown = (width?: number) =>
    [describeExecution(record, 0, width), describeExecution(record, 0, width, { steps: listed })].join('\n');
  expect(shown()).not.toContain('…');
  expect(shown()).toContain(`✓ ${key}  agent ${NAME}`);
  expect(shown()).toContain(`✓ ${NAME}  `);
  expect(shown(80)).not.toContain(NAME);
  expect(shown(80)).not.toContain(key);
});

it('names the agents that are at work, and those that were when it was stopped', async () => {
  const { orchestrator, clock } = createTestOrchestrator({
    ensembles: [
      { name: 'e', timeout: '5s', flow: [{ agent: 'crunch', operation: 'code', config: { script: 'hang' } }] },
    ],
    scripts: { hang: () => new Promise(() => {}) },
  });
  const { id } = await orchestrator.start('e');
  const shown = async () => {
    const { steps: atWork } = await orchestrator.executions.running(id);
    return describeExecution(await orchestrator.executions.get(id), 0, undefined, { atWork });
  };
  await clock.advance(1000);
  expect(await shown()).toContain('\n\nat work\n  crunch flow[0]\n');
  await clock.advance(60_000);
  expect(await shown()).toContain('agents\n  no results\n\nstopped at work\n  crunch flow[0]\n');
});
