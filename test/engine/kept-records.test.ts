/** What a run keeps of its own results: no more than its record carries, and the same record that the storage gives. */

import { describe, expect, it } from 'vitest';
import { KeptRecords } from '../../src/adapters/engine/kept-records.ts';
import type { StepRecord } from '../../src/engine/model/stored-execution.ts';
import { code, scene } from './scene.ts';

const KB = 1024;
const result = (i: number, characters: number): StepRecord => ({
  ...{ key: `flow[0].foreach[${i}].steps[0]`, name: 'a', status: 'completed', attempts: 1 },
  ...{ startedAt: 1, duration: 0, output: 'x'.repeat(characters) },
});

describe('results that a run keeps for its record', () => {
  it('outputs of 8 MiB at most, however large the results are', () => {
    const kept = new KeptRecords();
    for (let i = 0; i < 900; i++) kept.add(result(i, 100 * KB));
    const length = kept.list.reduce((sum, { output }) => sum + String(output ?? '').length, 0);
    expect([kept.list.length, kept.agents]).toEqual([900, 900]);
    expect(length).toBeLessThanOrEqual(8 * KB * KB);
  });

  it('execute() gives the record that get() gives, with the same outputs left out', async () => {
    const sizes = [700 * KB, 3000 * KB, 1, 900 * KB, 1, 4000 * KB, 1, 3000 * KB];
    const { run, orchestrator } = scene(
      { flow: [{ foreach: sizes, collect: false, steps: [code('a', 'big', { input: { size: '${item}' } })] }] },
      { scripts: { big: ({ input }) => 'x'.repeat(input.size) } },
    );
    const given = await run();
    expect(given.agents.map(({ outputOmitted = false }) => outputOmitted)).toEqual([
      ...[false, false, false, true, false, true, false, true],
    ]);
    expect(given.agents).toEqual((await orchestrator.executions.get(given.id)).agents);
  });
});
