/** `debounce` and `batch`: several starts make one execution. */

import { describe, expect, it } from 'vitest';
import { describeWaits } from '../../src/cli/progress/describe-waits.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createOrchestrator } from '../../src/index.ts';
import { STORES } from './stores.ts';

/** An app whose ensemble notes each input that it runs with. */
function app(rules: object, options: object = {}) {
  const ran: unknown[] = [];
  const orchestrator = createTestOrchestrator({
    ensembles: [
      {
        name: 'pages',
        inputs: { page: { type: 'string', required: true }, text: { type: 'string', default: 'empty' } },
        flow: [{ agent: 'write', operation: 'code', config: { script: 'write' } }],
        outputs: { seen: '${input}' },
        ...rules,
      },
      { name: 'parent', flow: [{ ensemble: 'pages', input: '${input}' }], outputs: { seen: '${pages.output.seen}' } },
    ] as never,
    scripts: { write: ({ input }) => void ran.push(input) },
    ...options,
  });
  const start = async (page: string, text?: string, more: object = {}) =>
    orchestrator.start('pages', { page, ...(text !== undefined && { text }) }, more);
  return { orchestrator, ran, start, clock: orchestrator.clock };
}
const DEBOUNCE = { debounce: { wait: '10s', key: '${input.page}' } };
const BATCH = { batch: { size: 3, wait: '10s', key: '${input.page}' } };
const page = (text: string) => ({ page: 'a', text });

describe('debounce', () => {
  it('starts that follow each other make one execution, with the last input, when none has come for `wait`', async () => {
    const { start, ran, clock } = app(DEBOUNCE);
    const handles = [];
    for (const text of ['1', '2', '3']) {
      handles.push(await start('a', text));
      await clock.advance(9_000);
    }
    const other = await start('b', 'x');
    expect(new Set(handles.map(({ id }) => id)).size).toBe(1);
    expect(ran).toEqual([]);
    await clock.advance(1_000);
    expect(ran).toEqual([page('3')]);
    for (const handle of handles) expect((await handle.result()).output).toEqual({ seen: page('3') });
    await clock.advance(9_000);
    expect((await other.result()).status).toBe('completed');
    expect((await start('a', '4')).id).not.toBe(handles[0]?.id);
  });

  it('use: first keeps the first input; `max` counts from the first start', async () => {
    const rule = { debounce: { wait: '10s', max: '25s', use: 'first' } };
    const { start, ran, clock } = app(rule);
    for (let i = 0; i < 5; i++) {
      await start('a', String(i));
      await clock.advance(i < 4 ? 6_000 : 900);
    }
    expect(ran).toEqual([]);
    await clock.advance(100);
    expect(ran).toEqual([page('0')]);
  });

  it('an execution that waits for more starts says so, until when, and how many it has', async () => {
    const { start, orchestrator, clock } = app(DEBOUNCE);
    const { id } = await start('a', '1');
    await clock.advance(4_000);
    await start('a', '2');
    const record = await orchestrator.executions.get(id);
    expect(record).toMatchObject({
      status: 'queued',
      input: page('2'),
      waitingFor: [
        { kind: 'debounce', key: 'a', starts: 2, since: record.createdAt, until: record.createdAt + 14_000 },
      ],
    });
    expect(describeWaits(record, clock.now())[0]).toMatch(
      /^ {2}more starts for a \(debounce\), after 2, since .*\(in 10s\)$/,
    );
    await clock.advance(10_000);
    expect((await orchestrator.executions.get(id)).waitingFor).toEqual([]);
  });

  it('the timeout counts from the instant at which it is due, and a start after its begin makes another execution', async () => {
    const flow = [{ sleep: '20s' }];
    const { start, clock } = app({ ...DEBOUNCE, flow, timeout: '30s' });
    const first = await start('a', '1');
    await clock.advance(9_000);
    await start('a', '2');
    await clock.advance(12_000);
    const second = await start('a', '3');
    expect(second.id).not.toBe(first.id);
    await clock.advance(60_000);
    expect([(await first.result()).status, (await second.result()).status]).toEqual(['completed', 'completed']);
  });

  it('a cancelled execution takes no more starts', async () => {
    const { start, orchestrator, ran, clock } = app(DEBOUNCE);
    const first = await start('a', '1');
    await orchestrator.executions.cancel(first.id);
    const second = await start('a', '2');
    await clock.advance(10_000);
    expect(ran).toEqual([page('2')]);
    expect([(await first.result()).status, (await second.result()).status]).toEqual(['cancelled', 'completed']);
  });

  it('a repeated start with the same key counts once, and finds its execution after the end, too', async () => {
    const { start, orchestrator, clock } = app(DEBOUNCE);
    const keyed = (key: string) => ({ idempotencyKey: key });
    const first = await start('a', '1', keyed('one'));
    await start('a', '2', keyed('two'));
    await clock.advance(6_000);
    expect((await start('a', '1', keyed('one'))).id).toBe(first.id);
    expect((await orchestrator.executions.get(first.id)).waitingFor[0]).toMatchObject({ starts: 2 });
    await clock.advance(4_000);
    expect((await first.result()).output).toEqual({ seen: page('2') });
    expect((await start('a', '2', keyed('two'))).id).toBe(first.id);
    expect(await orchestrator.executions.list()).toMatchObject({ executions: { length: 1 } });
    await expect(start('a', 'other', keyed('two'))).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
  });

  it('an input that does not fit, a missing key, an id, a signal and a transaction are refused; nothing is stored', async () => {
    const { start, orchestrator } = app({
      debounce: { wait: '10s', key: "${input.text == 'none' ? null : input.page}" },
    });
    await expect(start('a', 'none')).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('`debounce.key`'),
    });
    const other = app(DEBOUNCE);
    await expect(other.orchestrator.start('pages', {})).rejects.toMatchObject({ code: 'INVALID_INPUT' });
    for (const more of [{ id: 'mine' }, { signal: new AbortController().signal }])
      await expect(other.start('a', '1', more)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('`debounce`: several starts share an execution'),
      });
    for (const one of [orchestrator, other.orchestrator]) expect((await one.executions.list()).executions).toEqual([]);
  });

  it('a child, a retry and a dry run are executions of their own', async () => {
    const { orchestrator, ran } = app(DEBOUNCE);
    const parent = await orchestrator.execute('parent', page('1'));
    expect(parent).toMatchObject({ status: 'completed', output: { seen: page('1') } });
    const dry = await orchestrator.execute('pages', page('2'), { dryRun: true });
    expect(dry.error ?? dry.status).toBe('completed');
    expect(ran).toEqual([page('1')]);
  });
});

describe('batch', () => {
  it('begins with the list of inputs when it is full, or `wait` after the first start', async () => {
    const { start, ran, clock } = app(BATCH);
    const handles = [];
    for (const text of ['1', '2', '3', '4']) handles.push(await start('a', text));
    await clock.advance(0);
    expect(ran).toEqual([['1', '2', '3'].map(page)]);
    const [first, second, third, fourth] = handles;
    expect([second?.id, third?.id]).toEqual([first?.id, first?.id]);
    expect((await third?.result())?.output).toEqual({ seen: ['1', '2', '3'].map(page) });
    await clock.advance(6_000);
    expect((await start('a', '5')).id).toBe(fourth?.id);
    await clock.advance(4_000);
    expect(ran[1]).toEqual(['4', '5'].map(page));
  });

  it('checks each input by `inputs`, with defaults; a start of another key goes to another batch', async () => {
    const { start, ran, clock } = app(BATCH);
    await start('a');
    await start('b', 'x');
    await clock.advance(10_000);
    expect(ran).toEqual([[{ page: 'a', text: 'empty' }], [{ page: 'b', text: 'x' }]]);
  });

  it('a batch that failed is retried with its list, which another input replaces; a child gets a list of one', async () => {
    const flow = [{ agent: 'fail', operation: 'code', config: { script: 'fail' } }];
    let fails = true;
    const { start, orchestrator, clock } = app(
      { ...BATCH, flow },
      {
        scripts: {
          fail() {
            if (fails) throw new Error('away');
          },
        },
      },
    );
    const first = await start('a', '1');
    await start('a', '2');
    await clock.advance(10_000);
    expect((await first.result()).status).toBe('failed');
    fails = false;
    const retried = await orchestrator.executions.retry(first.id);
    expect((await retried.result()).output).toEqual({ seen: ['1', '2'].map(page) });
    await expect(orchestrator.executions.retry(retried.id, { from: 'fail', input: page('3') })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('must be a list of inputs, because of `batch`'),
    });
    const again = await orchestrator.executions.retry(retried.id, { from: 'fail', input: [page('3')] });
    expect((await again.result()).output).toEqual({ seen: [page('3')] });
    expect((await orchestrator.execute('parent', page('4'))).output).toEqual({ seen: [page('4')] });
  });

  it('large inputs begin before the batch is full', async () => {
    const { start, clock } = app({ batch: { size: 10, wait: '10s' } });
    const text = 'x'.repeat(400_000);
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push((await start('a', text)).id);
    expect(ids.map((id) => ids.indexOf(id))).toEqual([0, 0, 2, 2]);
    await clock.advance(10_000);
  });

  it('waits for a slot of a limit like any other execution, and takes starts until then', async () => {
    const concurrency = { limit: 1, key: '${input.page}' };
    const flow = [{ wait: 'go' }];
    const { start, orchestrator, clock } = app({ ...BATCH, concurrency: { ...concurrency, hold: true }, flow });
    const first = await start('a', '1');
    await clock.advance(10_000);
    const second = await start('a', '2');
    await clock.advance(10_000);
    expect((await start('a', '3')).id).toBe(second.id);
    const { waitingFor, status } = await orchestrator.executions.get(second.id);
    expect([status, waitingFor.map(({ kind }) => kind)]).toEqual(['queued', ['limit', 'batch']]);
    await orchestrator.executions.signal(first.id, 'go');
    await clock.advance(0);
    expect((await orchestrator.executions.get(second.id)).status).toBe('waiting');
  });

  it('takes starts while its ensemble is paused, and begins when that is resumed', async () => {
    const { start, orchestrator, ran, clock } = app(BATCH);
    await orchestrator.executions.pauseAll({ ensemble: 'pages' });
    const { id } = await start('a', '1');
    expect((await start('a', '2')).id).toBe(id);
    await clock.advance(20_000);
    expect([ran, (await orchestrator.executions.get(id)).status]).toEqual([[], 'paused']);
    expect((await start('a', '3')).id).toBe(id);
    await orchestrator.executions.resumeAll({ ensemble: 'pages' });
    await clock.advance(1_000);
    expect(ran).toEqual([['1', '2', '3'].map(page)]);
  });
});

describe('definitions', () => {
  it.each([
    [{ ...DEBOUNCE, ...BATCH }, '`debounce` and `batch` are both given; keep one of them'],
    [{ ...DEBOUNCE, priority: 3 }, "`priority` can't be used with `debounce`, which says when the execution begins"],
    [
      { ...BATCH, startWithin: '1m' },
      "`startWithin` or `queueTtl` can't be used with `batch`, which waits for more starts",
    ],
    [{ debounce: { wait: '10s', max: '5s' } }, 'must be at least `wait`: no execution begins before that'],
    [{ debounce: { wait: '40d' } }, 'must be from 1 ms to 31 days, such as `1m`'],
    [{ batch: { size: 0, wait: '1s' } }, 'must be at least 1, not 0'],
    [{ batch: { size: 10 } }, '`wait` is required'],
    [{ batch: { size: 10, wait: '1s', key: 'page' } }, 'must read the input, such as `${input.customer}`'],
    [{ ...BATCH, outputs: { page: '${input.page}' } }, 'list'],
  ])('%j is refused', (rules, message) => {
    expect(() => app(rules)).toThrow(message);
  });
});

describe.each(Object.entries(STORES))('in processes on %s', (_name, open) => {
  const processes = async (rules: object) => {
    const ran: { readonly n: number }[][] = [];
    const flow = [{ agent: 'write', operation: 'code', config: { script: 'write' } }];
    const made = (await open()).map((storage) =>
      createOrchestrator({
        ensembles: [{ name: 'pages', ...rules, flow } as never],
        scripts: { write: ({ input }) => void ran.push([input].flat() as never) },
        storage,
        logger: false,
      }),
    );
    await Promise.all(made.map((one) => one.ready()));
    return { made, ran, close: () => Promise.all(made.map((one) => one.close())) };
  };

  it('each of 200 starts at the same time is in one batch, also those that are repeated; none is too large', async () => {
    const { made, ran, close } = await processes({ batch: { size: 7, wait: '300ms', key: '${input.n % 3}' } });
    const numbers = Array.from({ length: 200 }, (_, n) => n);
    const handles = await Promise.all(
      numbers.flatMap((n) => made.map((one) => one.start('pages', { n }, { idempotencyKey: String(n) }))),
    );
    await Promise.all(handles.map((handle) => handle.result()));
    expect(
      ran
        .flat()
        .map(({ n }) => n)
        .sort((a, b) => a - b),
    ).toEqual(numbers);
    expect(Math.max(...ran.map((batch) => batch.length))).toBeLessThanOrEqual(7);
    for (const batch of ran) expect(new Set(batch.map(({ n }) => n % 3)).size).toBe(1);
    // Of each key, 66 or 67 starts.
    expect(ran.length).toBeLessThan(40);
    expect(new Set(handles.map(({ id }) => id)).size).toBe(ran.length);
    await close();
  });

  it('starts in all make one debounced execution, under a limit too', async () => {
    const { made, ran, close } = await processes({
      debounce: { wait: '400ms', key: '${input.n % 2}' },
      concurrency: { limit: 1, key: '${input.n % 2}' },
    });
    const handles = await Promise.all(
      Array.from({ length: 40 }, (_, n) => made[n % made.length]?.start('pages', { n })),
    );
    const ends = await Promise.all(handles.map((handle) => handle?.result()));
    expect(ends.every((end) => end?.status === 'completed')).toBe(true);
    expect(ran).toHaveLength(2);
    await close();
  });
});
