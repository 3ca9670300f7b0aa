/** Contract 1: what a program in plain JavaScript gets wrong is said where it is written, before anything runs. */

import { describe, expect, it } from 'vitest';
import { createOrchestrator } from '../../src/orchestrator.ts';
import { ok, scene } from '../engine/scene.ts';

describe('misuse of the library', () => {
  it.each([
    ['storage', {}, 'a Storage such as memoryStorage()'],
    ['engine', {}, 'an ExecutionEngine such as embeddedEngine()'],
    ['http', fetch, 'an HttpClient such as fetchHttp()'],
    ['clock', { now: 5 }, 'a Clock such as systemClock()'],
    ['logger', { log() {} }, 'a Logger such as console'],
    ['storage', null, 'a Storage such as memoryStorage()'],
    ['secrets', ['API_KEY'], '`secrets` must be an object of names'],
    ['scripts', 'scripts/', '`scripts` must be an object of names'],
    ['operations', [{ name: 'x' }], '`operations[0]` must be what defineOperation({ name, run }) gives'],
    ['operations', [{ name: 'ok', run() {} }, null], '`operations[1]`'],
  ])('createOrchestrator({ %s }) of a wrong kind is a TypeError that says what is expected', (key, value, message) => {
    const make = () => createOrchestrator({ [key]: value } as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow(`createOrchestrator: \`${key}`);
  });

  it('a signal that is none is refused before the run is accepted', async () => {
    const { orchestrator } = scene([ok('a')]);
    for (const signal of [5, {}, null, new AbortController()] as unknown as AbortSignal[])
      for (const begin of [orchestrator.execute, orchestrator.start])
        await expect(begin('e', {}, { signal })).rejects.toThrow('execute: `signal` must be an AbortSignal');
    for (const options of [null, 5, 'x'] as never[])
      await expect(orchestrator.execute('e', {}, options)).rejects.toThrow('execute: options must be an object');
    expect((await orchestrator.executions.list()).executions).toEqual([]);
  });

  it('what this version checks and does not serve is loaded, and told to the logger, each once', async () => {
    const told: string[] = [];
    const note = (_fields: object, message = '') => void told.push(message);
    const logger = { debug: note, info: note, warn: note, error: note };
    const trigger = (type: string) => `name: ${type}\nflow: []\ntrigger: [{ type: ${type}, `;
    const webhook = `${trigger('webhook')} path: /webhooks/orders, public: true }]`;
    const schedule = `${trigger('schedule')} cron: "0 8 * * *" }]`;
    const notification = `name: told\nflow: []\nnotifications: [{ type: webhook, events: [execution.failed], url: https://a.example }]`;
    const orchestrator = createOrchestrator({ logger, ensembles: [webhook, schedule, notification] });
    expect(told).toEqual([
      'ensemble `webhook`: 3:11 trigger[0]: webhooks are checked and not served by this version; start the ensemble from a route of your own with `orchestrator.start`',
      'ensemble `told`: 3:17 notifications[0]: notifications are checked and not sent by this version; `orchestrator.on(event, listener)` tells of the same events',
    ]);
    expect((await orchestrator.ensembles.get('told')).definition.notifications).toHaveLength(1);
    await orchestrator.close();
  });

  it('an event that there is not would never be heard: TypeError, with the nearest one', () => {
    const { orchestrator } = scene([ok('a')]);
    const on =
      (event: string, listener: unknown = () => {}) =>
      () =>
        orchestrator.on(event as never, listener as never);
    expect(on('agent.complete')).toThrow('on: there is no event `agent.complete`; did you mean `agent.completed`?');
    expect(on('toString')).toThrow('there are execution.started, ');
    expect(on('agent.completed', 'log')).toThrow('on: what listens to `agent.completed` must be a function');
  });

  it('seed, authentication 4: a value that is missing is no valid token', async () => {
    const { tokens } = scene([]).orchestrator;
    for (const value of [undefined, null, 5] as unknown as string[])
      await expect(tokens.verify(value)).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
  });

  it('a token that can not be made says what each field must be, in words, and repeats nothing', async () => {
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
      'plan: must be one of free, pro, enterprise',
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
