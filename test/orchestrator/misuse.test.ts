/** Mistakes of programs in plain JavaScript are reported at the wrong call, before anything runs. */

import { describe, expect, it } from 'vitest';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { ok, scene } from '../engine/scene.ts';

describe('misuse of the library', () => {
  it.each([
    ['storage', {}, 'a Storage such as memoryStorage()'],
    ['engine', {}, 'an ExecutionEngine such as embeddedEngine()'],
    ['http', fetch, 'an HttpClient such as fetchHttp()'],
    ['clock', { now: 5 }, 'a Clock such as systemClock()'],
    ['logger', { log() {} }, 'a Logger such as console'],
    ['storage', null, 'a Storage such as memoryStorage()'],
    ['secrets', ['API_KEY'], '`secrets` must be an object with names as keys'],
    ['scripts', 'scripts/', '`scripts` must be an object with names as keys'],
    ['operations', [{ name: 'x' }], '`operations[0]` must be a result of defineOperation({ name, run })'],
    ['operations', [{ name: 'ok', run() {} }, null], '`operations[1]`'],
  ])('createOrchestrator({ %s }) of a wrong type is a TypeError that says what is expected', (key, value, message) => {
    const make = () => createOrchestrator({ [key]: value } as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow(`createOrchestrator: \`${key}`);
  });

  it('a signal that is not an AbortSignal is refused before the execution is accepted', async () => {
    const { orchestrator } = scene([ok('a')]);
    for (const signal of [5, {}, null, new AbortController()] as unknown as AbortSignal[])
      for (const begin of [orchestrator.execute, orchestrator.start])
        await expect(begin('e', {}, { signal })).rejects.toThrow('execute: `signal` must be an AbortSignal');
    for (const options of [null, 5, 'x'] as never[])
      await expect(orchestrator.execute('e', {}, options)).rejects.toThrow('execute: options must be an object');
    expect((await orchestrator.executions.list()).executions).toEqual([]);
  });

  it('an unknown event is a TypeError, with the nearest event', () => {
    const { orchestrator } = scene([ok('a')]);
    const on =
      (event: string, listener: unknown = () => {}) =>
      () =>
        orchestrator.on(event as never, listener as never);
    expect(on('agent.complete')).toThrow('on: there is no event `agent.complete`; did you mean `agent.completed`?');
    expect(on('toString')).toThrow('there are execution.started, ');
    expect(on('agent.completed', 'log')).toThrow('on: the listener of `agent.completed` must be a function');
  });

  it('a missing value is not a valid token', async () => {
    const { tokens } = scene([]).orchestrator;
    for (const value of [undefined, null, 5] as unknown as string[])
      await expect(tokens.verify(value)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  });

  it('the error for an invalid token says what each field must be, and repeats no value', async () => {
    const { tokens } = scene([]).orchestrator;
    const say = async (token: unknown) => {
      const { issues } = await tokens.create(token as never).then(
        () => ({ issues: [] }),
        ({ details }) => details,
      );
      return issues.map(({ path, message }: { path: string; message: string }) => `${path}: ${message}`);
    };
    expect(await say({})).toEqual(['name: is required: a string', 'scopes: is required: a list']);
    expect(await say({ name: 5, scopes: 'admin', expiresIn: '60', plan: 'gold' })).toEqual([
      'name: must be a string, not a number',
      'scopes: must be a list, not a string',
      'expiresIn: must be a number, not a string',
      'plan: must be one of free, pro, enterprise, or figures such as { requests: 500, executions: 10000 }',
    ]);
    expect(await say({ name: '', scopes: [], expiresIn: 0 })).toEqual([
      'name: must have 1 to 200 characters',
      'scopes: must have at least one scope',
      'expiresIn: must be 1 to 315360000 seconds (ten years); leave it out for a token that never expires',
    ]);
    expect(await say({ name: 'x', scopes: ['execute:ensemble'], expires: 5 })).toEqual([
      expect.stringMatching(/^scopes\[0\]: must be one of .*; did you mean execute:ensembles\?$/),
      ': `expires` is not a key here; did you mean `expiresIn`?',
    ]);
    expect(await say(undefined)).toEqual([': is required: an object']);
  });
});
