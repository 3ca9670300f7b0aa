/** `ensemble`: the limits of depth and number of child executions, with one place and with five; what a child reads and reports. */

import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { childrenOf, code, echo, ok, type Scene, scene, turns, when } from './scene.ts';

/** An execution and all its descendants, the oldest first. */
async function tree(made: Scene, id: string): Promise<{ depth: number; status: string }[]> {
  const { status, trigger } = await made.orchestrator.executions.get(id);
  const rows: { depth: number; status: string }[] = [{ depth: trigger.depth ?? 0, status }];
  for (const child of await childrenOf(made, id)) rows.push(...(await tree(made, child.id)));
  return rows;
}

const DEPTHS = Array.from({ length: 17 }, (_, depth) => depth);

describe.each([1, 5, 1000])('executions that start each other, with concurrency %i', (concurrency) => {
  const engine = () => embeddedEngine({ concurrency });

  it.each<[string, readonly { name: string; flow: object[] }[]]>([
    ['A -> A', [{ name: 'A', flow: [ok('a'), { ensemble: 'A' }] }]],
    [
      'A -> B -> A',
      [
        { name: 'A', flow: [ok('a'), { ensemble: 'B' }] },
        { name: 'B', flow: [{ ensemble: 'A' }, ok('never')] },
      ],
    ],
  ])('%s ends at depth 16: every execution fails, with a reason', async (_what, ensembles) => {
    const made = scene([{ ensemble: 'A' }], { ensembles, engine: engine() });
    const run = await made.orchestrator.execute('A');
    expect(run).toMatchObject({ status: 'failed', error: { code: 'EXECUTION_FAILED' } });
    expect(run.error?.message).toContain('more than 16 levels deep');
    const rows = await tree(made, run.id);
    expect(rows.map(({ depth }) => depth)).toEqual(DEPTHS);
    expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(['failed']));
    expect(made.ran).not.toContain('never');
    expect((await made.orchestrator.executions.list({ status: 'queued' })).executions).toEqual([]);
  });

  it('an execution that handles the refusal continues; all 16 levels complete', async () => {
    const flow = [{ ensemble: 'A', continueOnError: true }, ok('z')];
    const made = scene([ok('x')], { ensembles: [{ name: 'A', flow }], engine: engine() });
    const run = await made.orchestrator.execute('A');
    expect(new Set((await tree(made, run.id)).map(({ status }) => status))).toEqual(new Set(['completed']));
    expect(made.ran.length).toBe(17);
  });
});

describe('at most 1,000 descendants', () => {
  it.each([1, 5])('the 1,001st is refused at any place in the flow, with concurrency %i', async (concurrency) => {
    const leaf = { name: 'leaf', flow: [] };
    const twig = { name: 'twig', flow: [{ foreach: '${input.list}', concurrency: 20, steps: [{ ensemble: 'leaf' }] }] };
    const list = Array.from({ length: 40 }, (_, i) => i);
    const made = scene(
      {
        flow: [
          { foreach: list.slice(0, 24), concurrency: 3, steps: [{ ensemble: 'twig', input: { list } }] },
          // 24 and 24 * 40 are 984.
          { foreach: list.slice(0, 16), steps: [{ ensemble: 'leaf' }] },
          { ensemble: 'leaf', name: 'last' },
        ],
        outputs: { why: '${last.error.message}' },
      },
      { ensembles: [leaf, twig], engine: embeddedEngine({ concurrency }) },
    );
    const run = await made.run();
    expect(run).toMatchObject({ status: 'failed', error: { code: 'EXECUTION_FAILED', agent: 'last' } });
    expect(run.error?.message).toContain(`${run.id} already has 1000 descendants`);
    expect((await tree(made, run.id)).filter(({ status }) => status === 'completed').length).toBe(1000);
  });

  it('each execution has its own count', async () => {
    const made = scene([{ foreach: '${input.list}', steps: [{ ensemble: 'leaf' }] }], {
      ensembles: [{ name: 'leaf', flow: [] }],
    });
    const list = Array.from({ length: 600 }, (_, i) => i);
    expect((await made.run({ list })).status).toBe('completed');
    expect((await made.run({ list })).status).toBe('completed');
  });

  it('a child is not refused when the queue is full', async () => {
    const engine = embeddedEngine({ concurrency: 1, queueLimit: 1 });
    const made = scene([{ foreach: [1, 2, 3], concurrency: 3, steps: [{ ensemble: 'leaf' }] }], {
      ensembles: [{ name: 'leaf', flow: [ok('a')] }],
      engine,
    });
    expect((await made.run()).status).toBe('completed');
  });
});

describe('what a child reads and reports', () => {
  it('secrets: the child reads them itself, and a secret in its error is masked in its parent', async () => {
    const secret = 'pl4nted-secret-of-the-test';
    const child = {
      name: 'child',
      flow: [code('b', 'leak', { config: { key: '${env.API_KEY}' } })],
    };
    const seen: unknown[] = [];
    const made = scene(
      {
        flow: [{ ensemble: 'child' }, echo('z', '${child.error.message}', when('child.failed'))],
        outputs: { why: '${z.output}' },
      },
      {
        ensembles: [child],
        secrets: { API_KEY: secret },
        scripts: {
          leak({ config }) {
            seen.push(config.key);
            throw new Error(`refused ${config.key}`);
          },
        },
      },
    );
    const run = await made.run();
    expect(seen).toEqual([secret]);
    expect((run.output as { why: string }).why).toMatch(/^ensemble `child` failed: refused /);
    const { executions } = await made.orchestrator.executions.list();
    expect(JSON.stringify([run, executions])).not.toContain(secret);
  });

  it('state: the child has the state of its own ensemble', async () => {
    const child = {
      name: 'child',
      state: { initial: { n: 10 } },
      flow: [echo('b', 1, { setState: { n: '${state.n + 1}' } })],
    };
    const made = scene(
      {
        state: { initial: { n: 1 } },
        flow: [{ ensemble: 'child' }, echo('z', '${state.n}')],
        outputs: { n: '${z.output}' },
      },
      { ensembles: [child] },
    );
    expect((await made.run()).output).toEqual({ n: 1 });
  });

  it('events: its start, its end and its own events are emitted once, even when the parent is suspended meanwhile', async () => {
    const child = { name: 'child', flow: [{ sleep: '${input.ms}' }, ok('b')] };
    const made = scene(
      [
        { ensemble: 'child', input: { ms: '1h' } },
        { ensemble: 'child', name: 'x', detached: true, input: { ms: 0 } },
      ],
      {
        ensembles: [child],
      },
    );
    const emitted: unknown[] = [];
    const ids: string[] = [];
    for (const kind of ['child.started', 'child.ended', 'execution.completed'] as const) {
      made.orchestrator.on(kind, ({ data }) => {
        if ('childId' in data && !ids.includes(data.childId)) ids.push(data.childId);
        emitted.push([kind, 'childId' in data ? data.key : data.ensemble, ...('status' in data ? [data.status] : [])]);
      });
    }
    const run = await made.run();
    await turns();
    expect(emitted.filter((row) => JSON.stringify(row).includes('flow['))).toEqual([
      ['child.started', 'flow[0]'],
      ['child.ended', 'flow[0]', 'completed'],
      ['child.started', 'flow[1]'],
    ]);
    expect(ids.sort()).toEqual((await childrenOf(made, run.id)).map(({ id }) => id).sort());
    expect(emitted.filter((row) => JSON.stringify(row).includes('execution.completed')).length).toBe(3);
  });

  it('a retry of the parent starts only the children again that did not complete', async () => {
    let works = false;
    const made = scene(
      {
        flow: [
          { ensemble: 'good', input: '${input.n}' },
          { ensemble: 'bad', continueOnError: true },
          code('end', 'end'),
        ],
        outputs: { n: '${good.output.n}', bad: '${bad.success}' },
      },
      {
        ensembles: [
          { name: 'good', flow: [echo('a', '${input}')], outputs: { n: '${a.output}' } },
          { name: 'bad', flow: [code('b', 'end')] },
        ],
        scripts: {
          end() {
            if (!works) throw new Error('not yet');
            return 1;
          },
        },
      },
    );
    const failed = await made.run({ n: 5 });
    expect([failed.status, made.ran]).toEqual(['failed', ['a', 'b', 'end']]);
    works = true;
    made.ran.length = 0;
    const again = await made.orchestrator.executions.retry(failed.id);
    expect(await again.result()).toMatchObject({ status: 'completed', output: { n: 5, bad: true } });
    expect(made.ran).toEqual(['b', 'end']);
    expect((await childrenOf(made, again.id)).map(({ ensemble }) => ensemble)).toEqual(['bad']);
    expect((await childrenOf(made, failed.id)).length).toBe(2);
  });

  it('the retry of a child is an execution that its parent does not wait for', async () => {
    let works = false;
    const made = scene([{ ensemble: 'bad' }, ok('z')], {
      ensembles: [{ name: 'bad', flow: [code('b', 'end')] }],
      scripts: {
        end() {
          if (!works) throw new Error('not yet');
          return 1;
        },
      },
    });
    const failed = await made.run();
    const [child] = await childrenOf(made, failed.id);
    works = true;
    const again = await made.orchestrator.executions.retry(child?.id as string);
    expect((await again.result()).status).toBe('completed');
    expect((await made.orchestrator.executions.get(failed.id)).status).toBe('failed');
  });
});
