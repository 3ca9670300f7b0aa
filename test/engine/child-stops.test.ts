/** `ensemble`: a parent that ends stops its child, and a child that ends notifies its parent: cancel, timeout, close, damage. */

import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Execution } from '../../src/engine/execution/execution.ts';
import type { TestOrchestratorOptions } from '../../src/entries/testing.ts';
import type { Script } from '../../src/operations/code/script.ts';
import { childrenOf, code, deferred, echo, ok, type Scene, scene, turns, when } from './scene.ts';

const obedient: Script = ({ signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
const never: Script = () => new Promise(() => {});

const work = { name: 'child', flow: [code('b', 'obedient'), ok('c')] };
const nap = { name: 'child', flow: [{ sleep: '3d' }, ok('c')] };
const wait = { name: 'child', flow: [{ wait: 'go' }, ok('c')] };

const one = () => embeddedEngine({ concurrency: 1 });
const flow = [ok('a'), { ensemble: 'child' }, ok('z', when('child.failed'))];

/** The stored parent and its only child. */
async function both(made: Scene, id: string) {
  const [child] = await childrenOf(made, id);
  return [(await made.orchestrator.executions.get(id)).status, child?.status];
}

/** One place: a detached child runs there, and the other child is queued. */
function busyScene() {
  const gate = deferred();
  const blocker = { name: 'blocker', flow: [code('busy', 'gate')] };
  const scripts = { obedient, gate: () => gate.promise };
  const steps = [{ ensemble: 'blocker', detached: true }, ...flow];
  return { ...scene({ flow: steps }, { ensembles: [work, blocker], engine: one(), scripts }), gate };
}

async function queuedChild(made: Scene, id: string) {
  return (await childrenOf(made, id)).find(({ ensemble }) => ensemble === 'child') as Execution<unknown>;
}

describe('a cancellation of the parent', () => {
  it.each<[string, { name: string; flow: object[] }, TestOrchestratorOptions]>([
    ['runs', work, {}],
    ['sleeps', nap, {}],
    ['waits for a signal', wait, {}],
    ['runs, at concurrency 1', work, { engine: one() }],
    ['sleeps, at concurrency 1', nap, { engine: one() }],
    ['waits for a signal, at concurrency 1', wait, { engine: one() }],
  ])('while the child %s ends both at once, and nothing runs after that', async (_what, child, options) => {
    for (const way of ['executions', 'handle'] as const) {
      const made = scene({ flow }, { ensembles: [child], scripts: { obedient }, ...options });
      const handle = await made.start();
      await turns(10);
      if (way === 'handle') handle.cancel();
      else await made.orchestrator.executions.cancel(handle.id);
      const run = await handle.result();
      expect(run, way).toMatchObject({ status: 'cancelled', duration: 0, error: { code: 'EXECUTION_CANCELLED' } });
      await turns(10);
      expect(await both(made, handle.id), way).toEqual(['cancelled', 'cancelled']);
      expect(
        made.ran.filter((name) => name !== 'b'),
        way,
      ).toEqual(['a']);
      expect(made.clock.nextIn, way).toBeUndefined();
    }
  });

  it('while the child is queued: the child never begins', async () => {
    const made = busyScene();
    const handle = await made.start();
    await turns(10);
    expect((await queuedChild(made, handle.id)).status).toBe('queued');
    await made.orchestrator.executions.cancel(handle.id);
    made.gate.resolve(1);
    expect((await handle.result()).status).toBe('cancelled');
    expect((await queuedChild(made, handle.id)).status).toBe('cancelled');
    expect(made.ran).toEqual(['a', 'busy']);
  });

  it('with a child that ignores its signal delays both by at most 25 s', async () => {
    const child = { name: 'child', flow: [code('b', 'never')] };
    const made = scene({ flow }, { ensembles: [child], scripts: { never } });
    const handle = await made.start();
    await turns(10);
    await made.orchestrator.executions.cancel(handle.id);
    await made.clock.advance(25_000);
    expect((await handle.result()).status).toBe('cancelled');
    expect(await both(made, handle.id)).toEqual(['cancelled', 'cancelled']);
  });

  it('reaches three levels that all wait', async () => {
    const top = { name: 'middle', flow: [{ ensemble: 'child' }] };
    const made = scene({ flow: [{ ensemble: 'middle' }, ok('z')] }, { ensembles: [top, nap] });
    const handle = await made.start();
    await turns(10);
    const [middle] = await childrenOf(made, handle.id);
    await made.orchestrator.executions.cancel(handle.id);
    await made.clock.advance(0);
    expect((await handle.result()).status).toBe('cancelled');
    expect(await both(made, middle?.id as string)).toEqual(['cancelled', 'cancelled']);
  });

  it('a queued child that is cancelled alone notifies its parent', async () => {
    const made = busyScene();
    const handle = await made.start();
    await turns(10);
    const { id } = await queuedChild(made, handle.id);
    await made.orchestrator.executions.cancel(id);
    made.gate.resolve(1);
    expect(await handle.result()).toMatchObject({ status: 'completed' });
    expect(made.ran).toEqual(['a', 'busy', 'z']);
    expect((await made.orchestrator.executions.get(id)).status).toBe('cancelled');
  });
});

describe('timeouts of parent and child', () => {
  it('a child ends no later than its parent, and both as `timed_out`', async () => {
    const made = scene({ flow, timeout: 60_000 }, { ensembles: [nap] });
    const handle = await made.start();
    await turns(10);
    const [child] = await childrenOf(made, handle.id);
    expect(child?.deadlineAt).toBe((child?.createdAt as number) + 60_000);
    expect(await handle.result()).toMatchObject({ status: 'timed_out', duration: 60_000 });
    await made.clock.advance(0);
    expect(await both(made, handle.id)).toEqual(['timed_out', 'timed_out']);
    expect(made.ran).toEqual(['a']);
  });

  it.each<[string, number | undefined, unknown, number | undefined, number | undefined]>([
    ['of its step', undefined, '5s', undefined, 5000],
    ['of its own definition, where that is shorter', undefined, '5s', 2000, 2000],
    ["of its step, where its own definition's is longer", undefined, 5000, 9000, 5000],
    ["its parent's, where that is the shortest", 1000, '${5 * 1000}', 2000, 1000],
    ['none', undefined, undefined, undefined, undefined],
    ['a whole number of ms', undefined, 1.5, undefined, 2],
  ])('the deadline %s', async (_what, parent, timeout, own, expected) => {
    const child = { ...nap, ...(own && { timeout: own }) };
    const step = { ensemble: 'child', ...(timeout !== undefined && { timeout }), continueOnError: true };
    const made = scene({ flow: [step], ...(parent && { timeout: parent }) }, { ensembles: [child] });
    const handle = await made.start();
    await turns(10);
    const [{ createdAt = 0, deadlineAt } = {}] = await childrenOf(made, handle.id);
    expect(deadlineAt).toBe(expected && createdAt + expected);
    const { status, duration } = await handle.result();
    expect([status, duration]).toEqual([parent ? 'timed_out' : 'completed', expected ?? 3 * 86_400_000]);
  });

  it.each([0, -5, 'soon', null, 400_000_000_000])(
    'a timeout expression with the value %j fails the step; nothing is started',
    async (ms) => {
      const made = scene([{ ensemble: 'child', timeout: '${input.ms}' }], { ensembles: [nap] });
      const run = await made.run({ ms });
      expect(run).toMatchObject({ status: 'failed', error: { code: 'EXPRESSION_ERROR', agent: 'child' } });
      expect(run.error?.message).toMatch(/`timeout` of the `ensemble` at flow\[0\] needs a duration/);
      expect(await childrenOf(made, run.id)).toEqual([]);
    },
  );
});

describe('close() while a parent waits for its child', () => {
  it.each([
    ['which is active, cancels it after the grace period', work, 'cancelled'],
    ['which sleeps, cancels it after the grace period', nap, 'cancelled'],
  ])('%s', async (_what, child, status) => {
    const storage = memoryStorage();
    const made = scene({ flow: [{ ensemble: 'child' }] }, { ensembles: [child], scripts: { obedient }, storage });
    const handle = await made.start();
    await turns(10);
    const [{ id = '' } = {}] = await childrenOf(made, handle.id);
    const closing = made.orchestrator.close({ grace: 5000 });
    // Time advances by itself while no step is active.
    if (child === work) await made.clock.advance(5000);
    await closing;
    expect(made.clock.monotonic()).toBe(5000);
    expect((await storage.executions.get(handle.id))?.status).toBe(status);
    expect((await storage.executions.get(id))?.status).toBe(status);
    expect(made.clock.nextIn).toBeUndefined();
  });

  it('waits for a child that ends within the grace period, and for the next steps of its parent', async () => {
    const gate = deferred();
    const child = { name: 'child', flow: [code('b', 'gate')], outputs: { b: '${b.output}' } };
    const made = scene(
      { flow: [{ ensemble: 'child' }, echo('z', '${child.output.b}')], outputs: { z: '${z.output}' } },
      {
        ensembles: [child],
        scripts: { gate: () => gate.promise },
      },
    );
    const handle = await made.start();
    await turns(10);
    const closing = made.orchestrator.close({ grace: 5000 });
    await turns();
    gate.resolve('done');
    await closing;
    expect(await handle.result()).toMatchObject({ status: 'completed', output: { z: 'done' } });
  });
});
