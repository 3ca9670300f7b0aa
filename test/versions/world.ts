/** Processes over one store and one clock, for the tests of versions and traffic. */

import { afterEach } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createOrchestrator, type Orchestrator } from '../../src/index.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';

const open = new Set<Orchestrator>();
afterEach(async () => {
  for (const one of open) await one.close({ grace: 0 });
  open.clear();
});

export const scripts: NonNullable<OrchestratorOptions['scripts']> = {
  echo: ({ input }) => input as never,
  give: ({ input }) => (input as { n: number }).n,
  fail: () => {
    throw new Error('no');
  },
  other: () => 'other',
};

export function world(storage: Storage = memoryStorage({ shared: true }), more: OrchestratorOptions = {}) {
  const clock = manualClock();
  /** A process. It is closed after the test. */
  const deploy = (other: OrchestratorOptions = {}) => {
    const made = createOrchestrator({ scripts, storage, clock, logger: false, ...more, ...other });
    open.add(made);
    return made;
  };
  const stop = async (one: Orchestrator) => {
    open.delete(one);
    await one.close({ grace: 0 });
  };
  const settle = async (ms = 2_000) => {
    for (let i = 0; i < 5; i++) await hostTurn();
    await clock.advance(ms);
    for (let i = 0; i < 50; i++) await hostTurn();
  };
  return { clock, deploy, stop, settle, storage };
}

/** A definition that gives a number. @param head - its lines before the flow @param more - steps after the first */
export const order = (n: number, script = 'give', { head = '', more = '' } = {}) => `name: order
${head}flow:
  - { agent: say, operation: code, config: { script: ${script} }, input: { n: ${n} } }
${more}outputs: { n: '\${say.output}' }
`;

/** Stores versions v1, v2, ... of an ensemble, of which new executions run the first. @returns their hashes */
export async function versions(
  { ensembles }: Orchestrator,
  ...definitions: readonly string[]
): Promise<readonly string[]> {
  const hashes: string[] = [];
  for (const [i, definition] of definitions.entries()) {
    const label = `v${i + 1}`;
    const stored = i === 0 ? ensembles.create(definition, { label }) : ensembles.update('order', definition, { label });
    hashes.push((await stored).version);
    if (i === 0) await ensembles.traffic('order', { version: 'v1' });
  }
  return hashes;
}
