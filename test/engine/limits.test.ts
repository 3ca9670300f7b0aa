/** The limits of one run: its steps, what it holds, its decisions and its state. */

import { describe, expect, it } from 'vitest';
import { boom, code, echo, ok, scene, when } from './scene.ts';

type Fields = Readonly<Record<string, unknown>>;
const MiB = 1024 * 1024;
const each = (items: unknown, steps: readonly Fields[], fields: Fields = {}): Fields => ({
  foreach: items,
  steps,
  ...fields,
});
const count = (length: number) => Array.from({ length }, (_, i) => i);
/** Returns a string of `config.mib` MiB, different each time. */
const big = ({ config, execution }: { config: Fields; execution: { agent: string } }) => {
  return `${execution.agent}${Math.random()}`.padEnd((config.mib as number) * MiB, 'x');
};
const giving = (agent: string, mib: number, fields: Fields = {}) => code(agent, 'big', { config: { mib }, ...fields });
const tooLarge = { code: 'INVALID_OUTPUT', message: expect.stringContaining('the run holds more than 32 MiB') };

describe('a run has at most 1,000,000 steps', () => {
  const rounds = (n: number) => ({ while: '${true}', steps: [{ if: 'false', then: [] }], maxIterations: n });

  it('blocks, items and rounds together, replayed ones too; then it fails, and only `finally` still runs', async () => {
    const { orchestrator, start, ran } = scene({
      // 300,000 rounds of one block each, and the rest in a resumed run.
      flow: [
        { try: [rounds(300_000)], catch: [ok('caught')] },
        { wait: 'go' },
        ok('woken'),
        { try: [rounds(300_000), ok('never')], catch: [ok('no')], finally: [ok('cleanup')] },
        ok('nor'),
      ],
      outputs: { woken: '${woken.output}', cleanup: '${cleanup.success}' },
    });
    const handle = await start();
    await orchestrator.executions.signal(handle.id, 'go', null);
    expect(await handle.result()).toMatchObject({
      status: 'failed',
      partialOutput: { woken: 'woken', cleanup: true },
      error: { code: 'ITERATION_LIMIT', message: expect.stringContaining('1,000,000 steps') },
    });
    expect(ran).toEqual(['caught', 'woken', 'cleanup']);
  }, 120_000);

  it('a cross product of items ends at the limit', async () => {
    const items = count(1100);
    const inner = each('${input.items}', [{ if: 'false', then: [] }]);
    const { run } = scene({ flow: [each('${input.items}', [inner])] });
    expect(await run({ items })).toMatchObject({ status: 'failed', error: { code: 'ITERATION_LIMIT' } });
  }, 120_000);
});

describe('a run holds at most 32 MiB', () => {
  it.each<[string, readonly Fields[], number]>([
    ['outputs that a foreach collects', [each(count(40), [giving('a', 3)], { name: 'all' })], 11],
    ['... of several items at a time', [each(count(40), [giving('a', 3)], { concurrency: 4 })], 14],
    ['... of a foreach inside', [each(count(40), [each([1, 2], [giving('a', 1)])])], 33],
    ['... that a branch of a parallel collects', [{ parallel: [each(count(40), [giving('a', 3)])], name: 'both' }], 11],
    ['outputs under names', count(12).map((i) => giving(`a${i}`, 3)), 11],
    ['outputs in branches', [{ parallel: count(12).map((i) => giving(`a${i}`, 3)), concurrency: 1 }, ok('z')], 11],
  ])('%s: the run fails, and the message says what to do', async (_what, flow, most) => {
    const { run, ran } = scene({ flow: [...flow, ok('after')], outputs: {} }, { scripts: { big } });
    const result = await run();
    expect(result).toMatchObject({ status: 'failed', error: tooLarge });
    expect(result.error?.message).toContain('collect: false');
    expect(ran.length).toBeLessThanOrEqual(most);
    expect(ran).not.toContain('after');
  });

  it('the size in memory counts, and the input too', async () => {
    const objects = () => Array.from({ length: 20_000 }, () => ({}));
    const { run, ran } = scene([each(count(60), [code('a', 'objects')])], { scripts: { objects } });
    expect(await run()).toMatchObject({ status: 'failed', error: tooLarge });
    // 48 bytes each: 0.9 MiB together.
    expect(ran.length).toBeGreaterThan(30);
    expect(ran.length).toBeLessThan(40);
    const eight = scene(
      count(8).map((i) => giving(`a${i}`, 3.9)),
      { scripts: { big } },
    );
    expect(await eight.run({ text: 'x' })).toMatchObject({ status: 'completed' });
    expect(await eight.run({ text: 'x'.repeat(3 * MiB) })).toMatchObject({ status: 'failed', error: tooLarge });
  });

  it('neither `try` nor `continueOnError` handles it, and `finally` runs', async () => {
    const flow = [
      {
        try: [each(count(40), [giving('a', 3)], { continueOnError: true })],
        catch: [ok('caught')],
        finally: [ok('cleanup')],
      },
    ];
    const { run, ran } = scene(flow, { scripts: { big } });
    expect(await run()).toMatchObject({ status: 'failed', error: tooLarge });
    expect(ran).not.toContain('caught');
    expect(ran.at(-1)).toBe('cleanup');
  });

  it.each<[string, readonly Fields[]]>([
    ['a foreach that collects nothing', [each(count(40), [giving('a', 3)], { collect: false })]],
    ['... of several items at a time', [each(count(40), [giving('a', 3)], { collect: false, concurrency: 4 })]],
    ['a foreach that collects something else', [each(count(40), [giving('a', 3), ok('b')], { name: 'all' })]],
    [
      'rounds of a while',
      [{ while: '${(n.output ?? 0) < 40}', steps: [giving('a', 3), echo('n', '${(n.output ?? 0) + 1}')] }],
    ],
    [
      'rounds whose step is skipped, or fails',
      [
        {
          while: '${(n.output ?? 0) < 40}',
          steps: [
            echo('n', '${(n.output ?? 0) + 1}'),
            giving('a', 3, when('n.output % 2 == 0')),
            { parallel: [giving('b', 3), boom('c', { continueOnError: true })], name: 'both' },
          ],
        },
      ],
    ],
    [
      'a foreach in a loop, of which only the last round is held',
      [
        {
          while: '${(n.output ?? 0) < 10}',
          steps: [echo('n', '${(n.output ?? 0) + 1}'), each(count(5), [giving('a', 3)], { name: 'all' })],
        },
      ],
    ],
    [
      'branches that lost a race',
      [
        {
          while: '${(n.output ?? 0) < 20}',
          steps: [
            echo('n', '${(n.output ?? 0) + 1}'),
            { parallel: [{ if: 'true', then: [giving('a', 3), boom('c')] }, ok('b')], waitFor: 'any', concurrency: 1 },
          ],
        },
      ],
    ],
    [
      'a route and its chosen member',
      [
        {
          while: '${(n.output ?? 0) < 40}',
          steps: [echo('n', '${(n.output ?? 0) + 1}'), { agent: 'r', routes: [{ default: true, member: 'm' }] }],
        },
      ],
    ],
  ])('values that are no longer held do not count: %s', async (_what, flow) => {
    const agents = JSON.stringify(flow).includes('"m"')
      ? [{ name: 'm', operation: 'code', config: { script: 'big', mib: 3 } }]
      : [];
    const { run } = scene({ flow, agents, outputs: {} }, { scripts: { big } });
    expect(await run()).toMatchObject({ status: 'completed' });
  });

  it('with `durability: none` all results are held until the end', async () => {
    const flow = [each(count(40), [giving('a', 3)], { collect: false })];
    const { run, ran } = scene({ execution: { durability: 'none' }, flow }, { scripts: { big } });
    expect(await run()).toMatchObject({ status: 'failed', error: tooLarge });
    expect(ran.length).toBeLessThanOrEqual(11);
  });

  it('a resumed run counts what it held before', async () => {
    const flow = [each(count(6), [giving('a', 3)], { name: 'all' }), { wait: 'go' }, each(count(9), [giving('b', 3)])];
    const { start, orchestrator, ran } = scene(flow, { scripts: { big } });
    const handle = await start();
    await orchestrator.executions.signal(handle.id, 'go', null);
    expect(await handle.result()).toMatchObject({ status: 'failed', error: tooLarge });
    expect(ran.filter((name) => name === 'b').length).toBeLessThanOrEqual(5);
  });
});

describe('values for the storage are limited', () => {
  const log = { log: '${flatten([state.log, [a.output]])}' };

  it('the state of an ensemble: at most 32 MiB, else the step that changes it fails', async () => {
    const flow = [each(count(12), [giving('a', 3, { setState: log })], { collect: false }), ok('z')];
    const outputs = { entries: '${length(state.log)}' };
    const { run, ran } = scene({ state: { initial: { log: [] } }, flow, outputs }, { scripts: { big } });
    const result = await run();
    expect(result).toMatchObject({ status: 'failed', partialOutput: { entries: 10 }, error: { agent: 'a' } });
    expect(result.error).toMatchObject({
      code: 'INVALID_OUTPUT',
      message: expect.stringMatching(/^the state of the ensemble, changed by `setState`, is larger than 32 MiB/),
    });
    expect(ran.length).toBe(11);
  });

  it('a list of items from the state: at most 32 MiB, else the foreach fails', async () => {
    const flow = [
      each(count(6), [giving('a', 3, { setState: log })], { collect: false }),
      each('${flatten([state.log, state.log])}', [ok('b')], { name: 'all' }),
      echo('why', '${all.error}', when('all.failed')),
    ];
    const outputs = { why: '${why.output}' };
    const { run, ran } = scene({ state: { initial: { log: [] } }, flow, outputs }, { scripts: { big } });
    expect((await run()).output).toMatchObject({
      why: {
        code: 'INVALID_OUTPUT',
        message: expect.stringMatching(/^the list of the `foreach` at flow\[1\] is larger/),
      },
    });
    expect(ran).not.toContain('b');
  });
});

describe('all outputs share one budget of evaluation steps', () => {
  it('outputs after the budget is used fail, except cheap ones', async () => {
    const dear = Object.fromEntries(count(8).map((i) => [`dear${i}`, '${length(sha256(input.text))}']));
    const { run } = scene({ flow: [], outputs: { ...dear, cheap: '${length("ab")}' } });
    const { status, partialOutput: output, error } = await run({ text: 'x'.repeat(MiB) });
    expect([status, error?.code]).toEqual(['failed', 'EXPRESSION_ERROR']);
    const given = Object.entries(output as Fields).filter(([, value]) => value !== null);
    expect(Object.fromEntries(given)).toEqual({ dear0: 64, dear1: 64, dear2: 64, dear3: 64, cheap: 2 });
  });
});
