/** The project that `ensemble serve --watch` serves: what ends first when the service stops during a reload. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startLiveProject } from '../../src/cli/service/live-project.ts';
import { memoryStorage } from '../../src/index.ts';

/** A project whose only script waits for the test. */
function gatedProject() {
  let open = () => {};
  let reach = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const gate = async () => {
    reach();
    await opened;
  };
  const ensembles = ['name: e\nflow: [{ agent: a, operation: code, config: { script: gate } }]\n'];
  return { options: { ensembles, scripts: { gate } }, reached, open };
}

it('responses stay open until the last run of the current project ends, also when the replaced one ends later than the stop', async () => {
  const order: string[] = [];
  const last = async () => void order.push('responses end');
  const [before, after] = [gatedProject(), gatedProject()];
  const live = startLiveProject(before.options, {
    storage: memoryStorage(),
    last,
    isReplaceable: true,
    dashboard: false,
  });
  const replaced = live.orchestrator.execute('e').then(() => order.push('replaced'));
  await before.reached;
  await live.replace(after.options);
  const current = live.orchestrator.execute('e').then(() => order.push('current'));
  await after.reached;
  const closed = live.close(60_000);
  before.open();
  await replaced;
  for (let turn = 0; turn < 50; turn++) await nextTurn();
  after.open();
  await Promise.all([current, closed]);
  expect(order).toEqual(['replaced', 'current', 'responses end']);
});
