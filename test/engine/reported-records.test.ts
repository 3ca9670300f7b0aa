/** The results that a run keeps for the execution's record: no more than a record may hold, and the same as the storage returns. */

import { describe, expect, it } from 'vitest';
import type { StepRecord } from '../../src/engine/execution/stored-execution.ts';
import { ReportedRecords } from '../../src/engine/running/journal-records.ts';
import { code, scene } from './scene.ts';

const KB = 1024;
const result = (i: number, characters: number): StepRecord => ({
  ...{ key: `flow[0].foreach[${i}].steps[0]`, name: 'a', status: 'completed', attempts: 1 },
  ...{ startedAt: 1, duration: 0, output: 'x'.repeat(characters) },
});

describe('the results in the record of a run', () => {
  it('have at most 8 MiB of outputs, however large the results are', () => {
    const reported = new ReportedRecords();
    for (let i = 0; i < 900; i++) reported.add(result(i, 100 * KB));
    const length = reported.list.reduce((sum, { output }) => sum + String(output ?? '').length, 0);
    expect([reported.list.length, reported.agents]).toEqual([900, 900]);
    expect(length).toBeLessThanOrEqual(8 * KB * KB);
  });

  it('make execute() return the same record as get(), with the same outputs left out', async () => {
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
