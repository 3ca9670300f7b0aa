/** The storage suite's cases of reads that are bounded: what is large is left out and told of, and no question reads more than its answer. */

import type { Json } from '../../../engine/json.ts';
import type { StepRecord } from '../../../engine/model/stored-execution.ts';
import {
  accept,
  commitOne,
  end,
  enqueue,
  entry,
  execution,
  executionId,
  OWNER,
  release,
  retrying,
  type StorageCase,
  same,
  signal,
  step,
  T0,
} from './context.ts';

const KIB = 1024;
const MIB = KIB * KIB;
/** A text whose JSON takes so many bytes. */
const sized = (bytes: number) => 'x'.repeat(bytes - 2);
const note = (key: string, output: Json): StepRecord => step(key, { name: '', output, duration: 0, note: true });

export function slimReadCases(it: StorageCase): void {
  it('getStatus: where an execution stands, and nothing of its values', async (storage) => {
    same(await storage.getStatus(executionId(1)), undefined, 'of one that is unknown');
    const trigger = { type: 'ensemble', parentId: executionId(9), key: 'flow[0]' } as const;
    await accept(storage, execution(1, { trigger, input: sized(MIB) }));
    const { id, ensemble, version, createdAt } = execution(1);
    const about = { id, ensemble, version, trigger, createdAt, parentId: executionId(9) };
    same(await storage.getStatus(id), { ...about, status: 'running' }, 'one at work');
    await release(storage, 1, { status: 'waiting', dueAt: T0 + 900 });
    same((await storage.getStatus(id))?.status, 'waiting', 'one that waits');
    await accept(storage, execution(2));
    await commitOne(
      storage,
      entry(2, { steps: [step('flow[0]')], end: end({ status: 'failed', finishedAt: T0 + 7 }) }),
    );
    const { status, finishedAt } = (await storage.getStatus(executionId(2))) ?? {};
    same([status, finishedAt], ['failed', T0 + 7], 'one that has ended');
    await enqueue(storage, execution(3));
    same((await storage.getStatus(executionId(3)))?.status, 'queued', 'one that is queued');
  });

  it('getExecution: `agents: false` is the same record without its runs', async (storage) => {
    await accept(storage, execution(1));
    await commitOne(storage, entry(1, { steps: [step('flow[0]'), step('flow[1]')], end: end({ agents: 2 }) }));
    const whole = await storage.getExecution(executionId(1));
    same(whole?.agents.length, 2, 'runs');
    same(await storage.getExecution(executionId(1), { agents: false }), { ...whole, agents: [] }, 'without');
  });

  it('getExecution: outputs up to 4 MiB of JSON text in total, in UTF-8; those behind are null and marked', async (storage) => {
    await accept(storage, execution(1));
    const outputs: Json[] = [sized(MIB), null, 'ü'.repeat(MIB / 2 - 1), { a: sized(2 * MIB - 9) }, 7, null];
    const steps = outputs.map((output, i) => step(`flow[${i}]`, { output }));
    const failed = step('flow[6]', { status: 'failed', output: null, error: { code: 'TIMEOUT', message: 'late' } });
    await commitOne(storage, entry(1, { steps: [...steps, failed, step('flow[7]', { output: sized(100) })] }));
    const record = await storage.getExecution(executionId(1));
    const given = record?.agents.map(({ output, outputOmitted }) => [JSON.stringify(output).length, outputOmitted]);
    const first = [MIB, 4, MIB / 2 + 1].map((length) => [length, undefined]);
    // What takes no more than `null` is always there.
    const rest = [
      [4, true],
      [1, undefined],
      [4, undefined],
      [4, undefined],
      [4, true],
    ];
    same(given, [...first, ...rest], 'lengths, and whether they were left out');
    same((await storage.getStep(executionId(1), 'flow[3]'))?.output, outputs[3], 'one that was left out, by its key');
  });

  it('getExecution: 4 MiB of outputs to the byte are all there', async (storage) => {
    await accept(storage, execution(1));
    const steps = [0, 1, 2, 3].map((i) => step(`flow[${i}]`, { output: sized(MIB) }));
    await commitOne(storage, entry(1, { steps }));
    const record = await storage.getExecution(executionId(1));
    same(record?.agents.filter(({ outputOmitted }) => outputOmitted).length, 0, 'left out');
  });

  it('listExecutions: an input or output of more than 4 KiB is null, and the entry says which', async (storage) => {
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
    const listed = await storage.listExecutions({ limit: 10 });
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
      'inputs, outputs and what is left out',
    );
    const { input, output, omitted } = (await storage.getExecution(executionId(1))) ?? {};
    same([input, output, omitted], [values[1], sized(5 * KIB), undefined], 'the record has them');
  });

  it('listSteps: a page ends with the output that would be more than `bytes`, and has one step at least', async (storage) => {
    await accept(storage, execution(1));
    const sizes = [100, 200, 5000, 100, 100, 4];
    const steps = sizes.map((bytes, i) => step(`flow[${i}]`, { output: bytes === 4 ? null : sized(bytes) }));
    steps.splice(1, 0, note('decided', sized(300)));
    await commitOne(storage, entry(1, { steps }));
    const pages = async (notes: boolean, bytes: number) => {
      const found: number[] = [];
      for (let after: string | undefined; ; ) {
        const page = await storage.listSteps(executionId(1), { after, limit: 3, bytes, notes });
        if (page.length === 0) return found;
        found.push(page.length);
        after = page.at(-1)?.key;
      }
    };
    same(await pages(false, 300), [2, 1, 3], 'runs, in pages of 300 bytes');
    same(await pages(true, 300), [1, 1, 1, 1, 3], 'with notes');
    same(await pages(true, Number.POSITIVE_INFINITY), [3, 3, 1], 'without a bound');
  });

  it('listSteps: 8 MiB a page, unless something else is asked for', async (storage) => {
    await accept(storage, execution(1));
    const steps = [3, 3, 3].map((size, i) => step(`flow[${i}]`, { output: sized(size * MIB) }));
    await commitOne(storage, entry(1, { steps }));
    same((await storage.listSteps(executionId(1), { limit: 10 })).length, 2, 'steps of the page');
  });

  it('getStep: one record by its key, of that execution alone', async (storage) => {
    await accept(storage, execution(1));
    await accept(storage, execution(2));
    const records = [step('flow[0]'), retrying('flow[1]', 1), note('flow[2].wait', { at: 1 })];
    await commitOne(storage, entry(1, { steps: records }));
    for (const record of records) same(await storage.getStep(executionId(1), record.key), record, record.key);
    for (const key of ['flow[3]', '', 'constructor'])
      same(await storage.getStep(executionId(1), key), undefined, `key ${JSON.stringify(key)}`);
    for (const number of [2, 3])
      same(await storage.getStep(executionId(number), 'flow[0]'), undefined, `of execution ${number}`);
  });

  it('skipRuns: so many runs in their order, or all there are; notes do not count', async (storage) => {
    await accept(storage, execution(1));
    same(await storage.skipRuns(executionId(1), 3), { skipped: 0 }, 'of none');
    const steps = Array.from({ length: 40 }, (_, i) => (i % 4 === 0 ? note(`note-${i}`, i) : step(`flow[${i}]`)));
    await commitOne(storage, entry(1, { steps }));
    const runs = steps.filter((one) => !one.note).map(({ key }) => key);
    for (const count of [1, 7, 30])
      same(await storage.skipRuns(executionId(1), count), { skipped: count, key: runs[count - 1] }, `${count}`);
    same(await storage.skipRuns(executionId(1), 999_999_999), { skipped: 30, key: runs[29] }, 'more than there are');
    same(await storage.skipRuns(executionId(1), 0), { skipped: 0 }, 'none');
    same(await storage.skipRuns(executionId(2), 5), { skipped: 0 }, 'of an execution that is unknown');
  });

  it('findSignal: one by its id, of that execution alone', async (storage) => {
    for (const number of [1, 2]) await accept(storage, execution(number));
    const sent = signal(1, 1, { id: 'key_go:"ü"', payload: { a: [1] } });
    await storage.putSignal(sent);
    await storage.putSignal(signal(2, 1));
    same(await storage.findSignal(executionId(1), sent.id), sent, 'it');
    for (const [number, id] of [
      [1, 'key_go'],
      [2, sent.id],
      [3, sent.id],
    ] as const)
      same(await storage.findSignal(executionId(number), id), undefined, `${id} of execution ${number}`);
    await storage.commit(OWNER, [entry(1, { end: end() })]);
    same(await storage.findSignal(executionId(1), sent.id), sent, 'behind the end');
  });
}
