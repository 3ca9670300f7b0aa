/** Storage suite: bounded reads. Large values are left out and marked, and a read takes no more than its answer. */

import type { Json } from '../../../engine/base/json/json.ts';
import {
  accept,
  commitOne,
  decision,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  release,
  retrying,
  type StorageCase,
  same,
  step,
  T0,
} from '../context.ts';

const KIB = 1024;
const MIB = KIB * KIB;
/** A text whose JSON takes `bytes` bytes. */
const sized = (bytes: number) => 'x'.repeat(bytes - 2);

export function slimReadCases(it: StorageCase): void {
  it('getStatus: returns the status of an execution without its values', async (storage) => {
    same(await storage.executions.getStatus(executionId(1)), undefined, 'of an unknown execution');
    const trigger = { type: 'ensemble', parentId: executionId(9), key: 'flow[0]' } as const;
    await accept(storage, execution(1, { trigger, input: sized(MIB) }));
    const { id, ensemble, version, createdAt } = execution(1);
    const about = { id, ensemble, version, trigger, createdAt, parentId: executionId(9) };
    same(await storage.executions.getStatus(id), { ...about, status: 'running' }, 'a running execution');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 900 });
    same((await storage.executions.getStatus(id))?.status, 'waiting', 'a waiting execution');
    await accept(storage, execution(2));
    await commitOne(
      storage,
      entry(2, { steps: [step('flow[0]')], end: end({ status: 'failed', finishedAt: T0 + 7 }) }),
    );
    const { status, finishedAt } = (await storage.executions.getStatus(executionId(2))) ?? {};
    same([status, finishedAt], ['failed', T0 + 7], 'an execution that has ended');
    await enqueue(storage, execution(3));
    same((await storage.executions.getStatus(executionId(3)))?.status, 'queued', 'a queued execution');
  });

  it('get: `agents: false` returns the same record without agent runs', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]'), step('flow[1]')], end: end({ agents: 2 }) }));
    const whole = await storage.executions.get(executionId(1));
    same(whole?.agents.length, 2, 'runs');
    same(await storage.executions.get(executionId(1), { agents: false }), { ...whole, agents: [] }, 'without records');
  });

  it('get: returns outputs up to 4 MiB of JSON text in UTF-8; later outputs are null and marked', async (storage) => {
    await accept(storage, execution(1));
    const outputs: Json[] = [sized(MIB), null, 'ü'.repeat(MIB / 2 - 1), { a: sized(2 * MIB - 9) }, 7, null];
    const steps = outputs.map((output, i) => step(`flow[${i}]`, { output }));
    const failed = step('flow[6]', { status: 'failed', output: null, error: { code: 'TIMEOUT', message: 'late' } });
    await commitOne(storage, entry(1, { steps: [...steps, failed, step('flow[7]', { output: sized(100) })] }));
    const record = await storage.executions.get(executionId(1));
    const given = record?.agents.map(({ output, outputOmitted }) => [JSON.stringify(output).length, outputOmitted]);
    const first = [MIB, 4, MIB / 2 + 1].map((length) => [length, undefined]);
    // An output that takes no more than `null` is always returned.
    const rest = [
      [4, true],
      [1, undefined],
      [4, undefined],
      [4, undefined],
      [4, true],
    ];
    same(given, [...first, ...rest], 'lengths, and `outputOmitted`');
    same(
      (await storage.executions.getStep(executionId(1), 'flow[3]'))?.output,
      outputs[3],
      'an omitted output, read by its key',
    );
  });

  it('get: returns all outputs that take exactly 4 MiB', async (storage) => {
    await accept(storage, execution(1));
    const steps = [0, 1, 2, 3].map((i) => step(`flow[${i}]`, { output: sized(MIB) }));
    await commitOne(storage, entry(1, { steps }));
    const record = await storage.executions.get(executionId(1));
    same(record?.agents.filter(({ outputOmitted }) => outputOmitted).length, 0, 'omitted outputs');
  });

  it('list: an input or output of more than 4 KiB is null and listed in `omitted`', async (storage) => {
    const values = [
      sized(4 * KIB),
      sized(4 * KIB + 1),
      'ü'.repeat(2 * KIB),
      'ü'.repeat(2 * KIB - 1),
      [['"'.repeat(KIB)]],
    ];
    for (const [number, input] of values.entries()) await accept(storage, execution(number, { input }));
    await commitOne(storage, entry(0, { end: end({ output: sized(MIB) }) }));
    await commitOne(storage, entry(1, { end: end({ output: sized(5 * KIB) }) }));
    const listed = await storage.executions.list({ limit: 10 });
    const seen = listed.map(({ input, output, omitted }) => [input, output, omitted]);
    same(
      seen,
      [
        [values[4], null, undefined],
        [values[3], null, undefined],
        [null, null, ['input']],
        [null, null, ['input', 'output']],
        [values[0], null, ['output']],
      ],
      'input, output and omitted',
    );
    const { input, output, omitted } = (await storage.executions.get(executionId(1))) ?? {};
    same([input, output, omitted], [values[1], sized(5 * KIB), undefined], 'the record with both');
  });

  it('listSteps: a page ends before the output that would exceed `bytes`, and has at least one step', async (storage) => {
    await accept(storage, execution(1));
    const sizes = [100, 200, 5000, 100, 100, 4];
    const steps = sizes.map((bytes, i) => step(`flow[${i}]`, { output: bytes === 4 ? null : sized(bytes) }));
    steps.splice(1, 0, decision('decided', sized(300)));
    await commitOne(storage, entry(1, { steps }));
    const pages = async (notes: boolean, bytes: number) => {
      const found: number[] = [];
      for (let after: string | undefined; ; ) {
        const page = await storage.executions.listSteps(executionId(1), { after, limit: 3, bytes, notes });
        if (page.length === 0) return found;
        found.push(page.length);
        after = page.at(-1)?.key;
      }
    };
    same(await pages(false, 300), [2, 1, 3], 'page lengths with 300 bytes');
    same(await pages(true, 300), [1, 1, 1, 1, 3], 'page lengths with decisions');
    same(await pages(true, Number.POSITIVE_INFINITY), [3, 3, 1], 'page lengths without a limit of bytes');
  });

  it('listSteps: a page has 8 MiB of outputs by default', async (storage) => {
    await accept(storage, execution(1));
    const steps = [2, 2, 2, 2, 2].map((size, i) => step(`flow[${i}]`, { output: sized(size * MIB) }));
    await commitOne(storage, entry(1, { steps }));
    same((await storage.executions.listSteps(executionId(1), { limit: 10 })).length, 4, 'steps of the page');
  });

  it('getStep: finds a record by its key, in that execution only', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    const records = [step('flow[0]'), retrying('flow[1]', 1), decision('flow[2].wait', { at: 1 })];
    await commitOne(storage, entry(1, { steps: records }));
    for (const record of records)
      same(await storage.executions.getStep(executionId(1), record.key), record, record.key);
    for (const key of ['flow[3]', '', 'constructor'])
      same(await storage.executions.getStep(executionId(1), key), undefined, `key ${JSON.stringify(key)}`);
    for (const number of [2, 3])
      same(await storage.executions.getStep(executionId(number), 'flow[0]'), undefined, `of execution ${number}`);
  });

  it('getSteps: finds records by their keys, in the order in which they were first stored', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    const keys = Array.from({ length: 1200 }, (_, i) => `flow[0].foreach[${i}].steps[0]`);
    await commitOne(storage, entry(1, { steps: keys.map((key) => step(key)) }));
    const later = [decision('flow[1].sleep', { until: 1 }), retrying('flow[2] "\\\u0000\'', 1)];
    await commitOne(storage, entry(1, { steps: later }));
    const find = (wanted: readonly string[], number = 1) => storage.executions.getSteps(executionId(number), wanted);
    const asked = [later[1]?.key ?? '', keys[700] ?? '', 'flow[9]', later[0]?.key ?? '', keys[3] ?? ''];
    same(await find(asked), [step(keys[3] ?? ''), step(keys[700] ?? ''), ...later], 'records');
    same(
      (await find(keys.slice(100, 1100))).map(({ key }) => key),
      keys.slice(100, 1100),
      'keys of 1,000 records',
    );
    same(await find([]), [], 'no keys');
    same(await find(keys.slice(0, 2), 2), [], 'keys of another execution');
    same(await find(keys.slice(0, 2), 3), [], 'of an unknown execution');
  });

  it('skipSteps: skips `count` records in their order, or all; decisions count too', async (storage) => {
    await accept(storage, execution(1));
    same(await storage.executions.skipSteps(executionId(1), 3), { skipped: 0 }, 'without records');
    const steps = Array.from({ length: 40 }, (_, i) =>
      i % 4 === 0 ? decision(`decision-${i}`, i) : step(`flow[${i}]`),
    );
    await commitOne(storage, entry(1, { steps }));
    for (const count of [1, 7, 40])
      same(
        await storage.executions.skipSteps(executionId(1), count),
        { skipped: count, key: steps[count - 1]?.key },
        `${count}`,
      );
    same(
      await storage.executions.skipSteps(executionId(1), 999_999_999),
      { skipped: 40, key: steps[39]?.key },
      'more than there are',
    );
    same(await storage.executions.skipSteps(executionId(1), 0), { skipped: 0 }, 'none');
    same(await storage.executions.skipSteps(executionId(2), 5), { skipped: 0 }, 'of an unknown execution');
  });

  it('listEndedWaits: finds ended waits by the name of their signal and their instant, without payloads', async (storage) => {
    await accept(storage, execution(1));
    const wait = (key: string, name: string, startedAt: number) => ({
      ...decision(key, { big: 'x' }),
      name,
      startedAt,
    });
    const steps = [
      wait('flow[0].wait', 'go', T0 + 1),
      wait('flow[1].wait', 'stop', T0 + 2),
      decision('flow[2].wait'),
      wait('flow[3].wait', 'go', T0 + 3),
      step('flow[4]', { name: 'go', startedAt: T0 + 9 }),
    ];
    await commitOne(storage, entry(1, { steps }));
    const waits = (name: string, after: number) => storage.executions.listEndedWaits(executionId(1), name, after);
    const both = [
      { key: 'flow[0].wait', at: T0 + 1 },
      { key: 'flow[3].wait', at: T0 + 3 },
    ];
    same(await waits('go', T0), both, 'both');
    same(await waits('go', T0 + 1), both.slice(1), 'after the first');
    same(await waits('stop', T0), [{ key: 'flow[1].wait', at: T0 + 2 }], 'of another signal');
    for (const name of ['', 'other']) same(await waits(name, 0), [], `of ${JSON.stringify(name)}`);
    same(await storage.executions.listEndedWaits(executionId(2), 'go', 0), [], 'of an unknown execution');
  });
}
