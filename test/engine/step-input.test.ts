/** `executions.stepInput` and `executions.running`: a run without effects over the records finds what the agents got. */

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Json } from '../../src/engine/base/json/json.ts';
import { keyAt } from '../../src/engine/execution/seed.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { toDefinition } from './flow-definition.ts';
import { some } from './flow-model.ts';
import { concurrentFlow, sequentialFlow, unrulyFlow } from './random-flow.ts';
import { code, deferred, echo, ok, scene, turns } from './scene.ts';

const RUNS = { numRuns: 150, seed: 20260101 };

describe('executions.stepInput', () => {
  for (const [kind, flows] of Object.entries({ sequentialFlow, concurrentFlow, unrulyFlow })) {
    it(`${kind}: it is what the operation of each agent got in its last attempt`, async () => {
      let compared = 0;
      let unreached = 0;
      await fc.assert(
        fc.asyncProperty(
          flows.filter((flow) => !some(flow, (step) => step.kind === 'wait')),
          async (flow) => {
            const got = new Map<string, Json>();
            const calls = { count: 0 };
            const storage = memoryStorage();
            const noted = (give: (name: string, key: string) => Json) => (context: ScriptContext) => {
              calls.count += 1;
              got.set(context.idempotencyKey, context.input);
              return give(context.execution.agent, context.idempotencyKey);
            };
            const made = scene(toDefinition(flow), {
              storage,
              scripts: {
                ok: noted((name) => name),
                boom: noted((name) => {
                  throw new Error(`boom in ${name}`);
                }),
                flaky: noted((name, key) => {
                  if (flaky.has(key)) return name;
                  flaky.add(key);
                  throw new Error('not yet');
                }),
                echo: noted((_name, key) => got.get(key) ?? null),
              },
            });
            const flaky = new Set<string>();
            const { id, agents } = await made.run();
            const { seed = '' } = (await storage.executions.getAccepted(id)) ?? {};
            const before = calls.count;
            for (const { key } of agents) {
              const expected = got.get(keyAt(seed, key));
              const found = await made.orchestrator.executions.stepInput(id, key);
              if ('reason' in found) unreached += 1;
              else expect(found).toEqual({ key, input: expected });
              compared += 1;
            }
            expect(calls.count).toBe(before);
          },
        ),
        RUNS,
      );
      expect(compared).toBeGreaterThan(250);
      // In a block that is stopped, an agent may end at the instant of the stop: then the flow may stop before it.
      expect(unreached).toBeLessThanOrEqual(kind === 'sequentialFlow' ? 0 : 0.04 * compared);
    }, 60_000);
  }
});

describe('executions.stepInput: what it says instead', () => {
  const reasonOf = async ({ orchestrator }: ReturnType<typeof scene>, id: string, key: string) =>
    (await orchestrator.executions.stepInput(id, key)).reason;

  it('that the input read the state, which is not kept', async () => {
    const made = scene({
      state: { initial: { n: 1 } },
      flow: [ok('a', { setState: { n: 2 } }), echo('b', '${state.n}'), echo('c', '${a.output}')],
    });
    const { id } = await made.run();
    expect(await reasonOf(made, id, 'flow[1]')).toMatch(/it reads the state of the ensemble/);
    expect(await made.orchestrator.executions.stepInput(id, 'flow[2]')).toEqual({ key: 'flow[2]', input: 'a' });
  });

  it('why the input of a failed agent could not be computed', async () => {
    const made = scene([echo('a', '${input.text * 2}')]);
    const { id } = await made.run({ text: 'x' });
    expect(await reasonOf(made, id, 'flow[0]')).toMatch(/needs two numbers/);
  });

  it('of an agent whose result a retry kept, what it got in the execution in which it ran', async () => {
    let isDown = true;
    const made = scene([echo('a', '${input.n}'), code('b', 'flaky', { input: '${a.output}' })], {
      scripts: {
        flaky: ({ input }) => {
          if (isDown) throw new Error('down');
          return input;
        },
      },
    });
    const { orchestrator, clock } = made;
    const first = await made.run({ n: 1 });
    isDown = false;
    await clock.advance(1000);
    const { id } = await (await orchestrator.executions.retry(first.id, { input: { n: 2 } })).result();
    expect(await orchestrator.executions.stepInput(id, 'flow[0]')).toEqual({ key: 'flow[0]', input: 1 });
    expect(await orchestrator.executions.stepInput(id, 'flow[1]')).toEqual({ key: 'flow[1]', input: 1 });
    await orchestrator.executions.delete(first.id);
    expect(await reasonOf(made, id, 'flow[0]')).toBe(`execution ${first.id}, in which it ran, is deleted`);
  });

  it('what this process lacks to run the definition', async () => {
    const storage = memoryStorage();
    const made = scene([ok('a')], { storage });
    const { id } = await made.run();
    const other = createTestOrchestrator({ storage });
    expect((await other.executions.stepInput(id, 'flow[0]')).reason).toMatch(
      /can't follow its flow: .*no script `ok`/s,
    );
  });

  it('NOT_FOUND for what is no agent run', async () => {
    const made = scene([{ sleep: 5 }, ok('a')]);
    const { id } = await made.run();
    for (const key of ['flow[0]', 'flow[0].sleep', 'flow[9]', ''])
      await expect(made.orchestrator.executions.stepInput(id, key)).rejects.toThrow(`no agent run ${key}`);
  });
});

describe('executions.running', () => {
  it('has the agents that are at work in their attempt, and starts, sends and logs nothing itself', async () => {
    const gate = deferred();
    const lines: unknown[] = [];
    const note = (...line: unknown[]) => void lines.push(line);
    const made = scene(
      [
        ok('first'),
        { parallel: [code('x', 'hang', { input: '${first.output}' }), ok('y'), { ensemble: 'kid', name: 'k' }] },
      ],
      {
        logger: { debug: note, info: note, warn: note, error: note },
        scripts: { hang: () => gate.promise },
        ensembles: [{ name: 'kid', flow: [code('deep', 'hang')] }],
      },
    );
    const { id } = await made.start();
    await turns();
    const [calls, logged] = [made.ran.length, lines.length];
    const { executions } = made.orchestrator;
    expect(await executions.running(id)).toEqual({ steps: [{ key: 'flow[1].parallel[0]', name: 'x' }] });
    const children = await executions.list({ parentId: id });
    expect(children.executions).toHaveLength(1);
    expect(await executions.running(children.executions[0]?.id ?? '')).toEqual({
      steps: [{ key: 'flow[0]', name: 'deep' }],
    });
    expect([made.ran.length, lines.length]).toEqual([calls, logged]);
    gate.resolve('done');
    await turns(10);
    expect((await executions.get(id)).status).toBe('completed');
    expect(await executions.running(id)).toEqual({ steps: [] });
  });

  it('their inputs are known too', async () => {
    const made = scene([echo('a', 7), code('b', 'hang', { input: '${a.output + 1}' })], {
      scripts: { hang: () => deferred().promise },
    });
    const { id } = await made.start();
    await turns();
    const { executions } = made.orchestrator;
    expect(await executions.stepInput(id, 'flow[1]')).toEqual({ key: 'flow[1]', input: 8 });
    await expect(executions.stepInput(id, 'flow[2]')).rejects.toThrow('no agent run flow[2]');
  });

  it('of an execution that was cancelled or timed out, it has those that were at work then', async () => {
    const hang = { scripts: { hang: () => deferred().promise } };
    const flow = [ok('a'), { sleep: 1000 }, code('b', 'hang'), code('c', 'hang')];
    for (const [fields, endsAfter, steps] of [
      [{ timeout: '5s' }, 5_000, [{ key: 'flow[2]', name: 'b' }]],
      [{ timeout: '500ms' }, 500, []],
    ] as const) {
      const made = scene({ flow, ...fields }, hang);
      const { id } = await made.start();
      await made.clock.advance(endsAfter);
      await made.clock.advance(60_000);
      const { executions } = made.orchestrator;
      expect((await executions.get(id)).status).toBe('timed_out');
      expect(await executions.running(id)).toEqual({ steps });
    }
    const made = scene(flow, hang);
    const { id } = await made.start();
    await made.clock.advance(1_500);
    await made.orchestrator.executions.cancel(id);
    await made.clock.advance(60_000);
    expect((await made.orchestrator.executions.get(id)).status).toBe('cancelled');
    expect((await made.orchestrator.executions.running(id)).steps).toEqual([{ key: 'flow[2]', name: 'b' }]);
  });

  it('says what this process lacks', async () => {
    const storage = memoryStorage();
    const gate = deferred();
    const made = scene([code('a', 'hang')], { storage, scripts: { hang: () => gate.promise } });
    const { id } = await made.start();
    await turns();
    const other = createTestOrchestrator({ storage });
    expect(await other.executions.running(id)).toMatchObject({ steps: [], reason: expect.stringMatching(/hang/) });
    gate.resolve(1);
  });
});

interface ScriptContext {
  readonly input: Json;
  readonly idempotencyKey: string;
  readonly execution: { readonly agent: string };
}
