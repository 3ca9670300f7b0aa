/** `stubScript` of a test orchestrator. */

import { expect, it } from 'vitest';
import { code, ok, scene } from '../engine/scene.ts';

it('replaces a script until it is restored, and records the calls', async () => {
  const { orchestrator, run } = scene(
    [ok('a'), code('b', 'charge', { input: { cents: '${input.cents}' }, config: { currency: 'EUR' } })],
    {
      scripts: { charge: () => 'real' },
    },
  );
  const stub = orchestrator.stubScript('charge', ({ input }) => `stubbed ${input.cents}`);
  const stubbed = await run({ cents: 5 });
  expect(stubbed.agents[1]?.output).toBe('stubbed 5');
  expect(stub.calls).toEqual([
    {
      input: { cents: 5 },
      config: { currency: 'EUR' },
      execution: { id: stubbed.id, ensemble: 'e', agent: 'b', attempt: 1, hops: 0 },
    },
  ]);
  stub.restore();
  expect((await run({ cents: 5 })).agents[1]?.output).toBe('real');
  expect(stub.calls.length).toBe(1);
});

it('the newest stub counts, whichever is restored first', async () => {
  const { orchestrator, run } = scene([code('a', 'charge')], { scripts: { charge: () => 'real' } });
  const output = async () => (await run()).agents[0]?.output;
  const first = orchestrator.stubScript('charge', () => 'first');
  const second = orchestrator.stubScript('charge', () => 'second');
  expect(await output()).toBe('second');
  first.restore();
  expect(await output()).toBe('second');
  second.restore();
  expect(await output()).toBe('real');
});

it('refuses an unknown name, with the nearest one', () => {
  const { orchestrator } = scene([ok('a')], { scripts: { charge: () => 1 } });
  expect(() => orchestrator.stubScript('chrage', () => 1)).toThrow(
    'stubScript: there is no script `chrage` (registered: ok, boom, echo, charge); did you mean `charge`?',
  );
  expect(() => orchestrator.stubScript('charge', 'x' as never)).toThrow('stubScript: the stub must be a function');
});
