/** What a query about an execution reads and returns: neither grows with the execution. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { sqliteStorage } from '../../src/adapters/storage/sqlite/sqlite-storage.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { code, echo, ok, scene } from '../engine/scene.ts';
import { watchedStorage } from '../storage/watched-storage.ts';

const MIB = 1024 * 1024;
const sized = (bytes: number) => 'x'.repeat(bytes - 2);
const STORES = [
  { store: 'memoryStorage', create: () => memoryStorage() },
  { store: 'sqliteStorage', create: () => sqliteStorage({ path: ':memory:' }) },
] as const;

describe.each(STORES)('large values in $store', ({ create }) => {
  const large = () =>
    scene(
      {
        flow: [{ foreach: '${input.sizes}', collect: false, steps: [code('a', 'text', { input: '${item}' })] }],
        outputs: { last: '${input.pad}' },
      },
      {
        storage: create(),
        scripts: { text: ({ input }) => sized(Number(input) * MIB) },
      },
    );

  it('a record has at most 4 MiB of outputs, whether it comes from a run or from the storage', async () => {
    const { run, orchestrator } = large();
    const record = await run({ sizes: [1, 2, 3], pad: 'p' });
    const given = record.agents.map(({ key, output, outputOmitted }) => [
      key,
      output === null ? 0 : (output as string).length + 2,
      outputOmitted,
    ]);
    expect(given).toEqual([
      ['flow[0].foreach[0].steps[0]', MIB, undefined],
      ['flow[0].foreach[1].steps[0]', 2 * MIB, undefined],
      ['flow[0].foreach[2].steps[0]', 0, true],
    ]);
    expect(await orchestrator.executions.get(record.id)).toEqual(record);
    const third = await orchestrator.executions.agent(record.id, 'flow[0].foreach[2].steps[0]');
    expect((third.output as string).length).toBe(3 * MIB - 2);
    expect(third).not.toHaveProperty('outputOmitted');
  });

  it('an unknown agent run is NOT_FOUND, and so is a decision', async () => {
    const { run, orchestrator } = scene([{ wait: 'go', timeout: 1000, onTimeout: 'continue' }, ok('a')], {
      storage: create(),
    });
    const { id } = await run();
    expect(await orchestrator.executions.agent(id, 'flow[1]')).toMatchObject({ name: 'a', output: 'a' });
    for (const key of ['flow[0].wait', 'flow[2]', '', undefined as unknown as string])
      await expect(orchestrator.executions.agent(id, key)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(orchestrator.executions.agent('exec_none', 'flow[1]')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('a page of agent runs ends early at 8 MiB, with a cursor for the rest', async () => {
    const { run, orchestrator } = large();
    const { id } = await run({ sizes: [1, 2, 3, 4], pad: 'p' });
    const sizes: number[][] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await orchestrator.executions.agents(id, { limit: 100, ...(cursor !== undefined && { cursor }) });
      sizes.push(page.agents.map(({ output }) => Math.round((output as string).length / MIB)));
      cursor = page.nextCursor;
      if (cursor === undefined) break;
    }
    expect(sizes).toEqual([[1, 2, 3], [4]]);
  });

  it('a listing leaves out values of more than 4 KiB, and says which', async () => {
    const { run, orchestrator, clock } = large();
    await run({ sizes: [], pad: sized(4000) });
    await clock.advance(1);
    await run({ sizes: [], pad: sized(5000) });
    const { executions } = await orchestrator.executions.list();
    expect(executions.map(({ input, output, omitted }) => [input, output, omitted])).toEqual([
      [null, null, ['input', 'output']],
      [{ sizes: [], pad: sized(4000) }, { last: sized(4000) }, undefined],
    ]);
  });

  it('the status of an execution has no values', async () => {
    const { run, orchestrator } = scene([echo('a', '${input}')], { storage: create() });
    const { id, version, createdAt, finishedAt } = await run({ text: sized(MIB) });
    const about = { id, ensemble: 'e', version, trigger: { type: 'call' }, createdAt, finishedAt };
    expect(await orchestrator.executions.status(id)).toEqual({ ...about, status: 'completed' });
    await expect(orchestrator.executions.status('exec_none')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('reads', () => {
  const READS_VALUES = [
    ...['executions.get', 'executions.getAccepted', 'executions.listSteps', 'executions.getStep', 'executions.list'],
    'signals.list',
  ];
  const valuesRead = (calls: Record<string, number>) => READS_VALUES.filter((verb) => calls[verb] !== undefined);

  it('a refused cancel or signal reads no record and no steps', async () => {
    const { storage, calls } = watchedStorage(memoryStorage());
    const { run, orchestrator } = scene([ok('a')], { storage });
    const { id } = await run();
    const { executions } = orchestrator;
    calls();
    for (const refused of [executions.cancel(id), executions.signal(id, 'go')])
      await expect(refused).rejects.toMatchObject({
        code: 'CONFLICT',
        details: { executionId: id, status: 'completed' },
      });
    expect(valuesRead(calls())).toEqual([]);
  });

  it('reading a link reads no list of signals and no steps', async () => {
    const { storage, calls } = watchedStorage(memoryStorage());
    let link = '';
    const orchestrator = createTestOrchestrator({
      storage,
      signalLinks: { url: 'https://flows.example', secret: 'a secret that nobody can guess, 1' },
      scripts: {
        mail: ({ input }) => {
          link = String(input).slice(String(input).lastIndexOf('/') + 1);
          return null;
        },
      },
      ensembles: [
        {
          name: 'e',
          flow: [
            { agent: 'mail', operation: 'code', config: { script: 'mail' }, input: "${signalUrl('go')}" },
            { wait: 'go', timeout: 60_000, onTimeout: 'continue' },
            { wait: 'stop' },
            { wait: 'other' },
          ],
        },
      ],
    });
    const run = await orchestrator.start('e');
    await orchestrator.clock.advance(1000);
    const look = async () => {
      calls();
      const state = await orchestrator.signalLinks?.read(link);
      return [state?.state, valuesRead(calls())];
    };
    expect(await look()).toEqual(['open', []]);
    await orchestrator.executions.signal(run.id, 'other', sized(MIB));
    expect(await look()).toEqual(['open', []]);
    await orchestrator.clock.advance(60_000);
    expect(await look()).toEqual(['over', []]);
    await orchestrator.executions.signal(run.id, 'stop');
    await run.result();
    expect(await look()).toEqual(['over', []]);
  });

  it('a signal that no wait needs does not wake an execution: it is not claimed, and no step is read', async () => {
    const { storage, calls } = watchedStorage(memoryStorage());
    const never = { if: '${false}', then: [{ wait: 'other' }, { wait: 'g' }] };
    const flow = [{ wait: 'go' }, { sleep: 3_600_000 }, { wait: 'last' }, never];
    const { start, orchestrator, clock } = scene(flow, { storage });
    const run = await start();
    const status = async () => (await orchestrator.executions.status(run.id)).status;
    const send = async (name: string) => {
      calls();
      await orchestrator.executions.signal(run.id, name);
      await clock.advance(2000);
      return calls()['executions.listSteps'] ?? 0;
    };
    await clock.advance(1000);
    for (const name of ['last', 'other', 'g', 'last'])
      expect([name, await send(name), await status()]).toEqual([name, 0, 'waiting']);
    expect(await send('go')).toBe(1);
    // It sleeps: no signal wakes it.
    expect([await send('go'), await status()]).toEqual([0, 'waiting']);
    await clock.advance(3_600_000);
    // The signal that arrived before its wait is kept.
    expect((await run.result()).status).toBe('completed');
  });

  it('branches that wait for different signals are released with all their names', async () => {
    const { start, orchestrator, clock } = scene([
      { parallel: [{ wait: 'one' }, { wait: 'two' }, { sleep: 3_600_000 }] },
      { wait: 'three' },
    ]);
    const run = await start();
    await clock.advance(1000);
    for (const name of ['two', 'three', 'one']) {
      await orchestrator.executions.signal(run.id, name);
      await clock.advance(1000);
    }
    await clock.advance(3_600_000);
    expect((await run.result()).status).toBe('completed');
  });
});
