/** The class of a Durable Object: what it passes to its orchestrator and its handler. workerd runs it in test/runtimes. */

import { describe, expect, it } from 'vitest';
import { durableObjectStorage, toDurableObject } from '../../src/entries/workers.ts';
import { createHandler, createOrchestrator } from '../../src/index.ts';

function context() {
  const background: Promise<unknown>[] = [];
  const setAlarm = async () => undefined;
  const sql = { exec: () => ({ toArray: () => [] }) };
  const storage = { sql, transactionSync: <T>(work: () => T) => work(), setAlarm };
  return { background, storage, waitUntil: (promise: Promise<unknown>) => void background.push(promise) };
}

describe('toDurableObject', () => {
  it('creates its parts once, at the first event, and again after a failure', async () => {
    let created = 0;
    const Class = toDurableObject((_ctx, env: { readonly fails: boolean }) => {
      created += 1;
      if (env.fails && created === 1) throw new Error('a binding is missing');
      const orchestrator = createOrchestrator();
      return { orchestrator, handler: createHandler(orchestrator) };
    });
    const object = new Class(context(), { fails: true });
    expect(created).toBe(0);
    const ask = () => object.fetch(new Request('https://object.example/api/v1/health'));
    await expect(ask()).rejects.toThrow('a binding is missing');
    expect((await ask()).status).toBe(200);
    expect((await ask()).status).toBe(200);
    expect(created).toBe(2);
  });

  it('answers 404 without a handler, and gives its orchestrator to subclasses', async () => {
    const orchestrator = createOrchestrator();
    const object = new (toDurableObject(() => ({ orchestrator })))(context(), {});
    expect((await object.fetch(new Request('https://object.example/x'))).status).toBe(404);
    expect(object.orchestrator).toBe(orchestrator);
  });

  it('an alarm returns before its executions have ended, and keeps the object alive for them', async () => {
    const ctx = context();
    const calls: string[] = [];
    let end = () => {};
    const runDue = () => {
      calls.push('runDue');
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    };
    const ready = async () => void calls.push('ready');
    const object = new (toDurableObject(() => ({ orchestrator: { ready, runDue } })))(ctx, {});
    await object.alarm();
    expect([calls, ctx.background.length]).toEqual([['ready', 'runDue'], 1]);
    end();
    await Promise.all(ctx.background);
  });

  it('an alarm fails if the orchestrator is not ready, so that the platform repeats it', async () => {
    const ready = () => Promise.reject(new Error('the database is full'));
    const object = new (toDurableObject(() => ({ orchestrator: { ready, runDue: ready } })))(context(), {});
    await expect(object.alarm()).rejects.toThrow('the database is full');
  });
});

describe('the alarm of durableObjectStorage', () => {
  const open = (setAlarm: (instant: number) => Promise<void>) => {
    const sql = { exec: () => ({ toArray: () => [] }) };
    return durableObjectStorage({ storage: { sql, transactionSync: (work) => work(), setAlarm } });
  };

  it('is set to the earliest instant that was asked for and is not over', async () => {
    const alarms: number[] = [];
    const { wakeAt } = open(async (instant) => void alarms.push(instant));
    const now = Date.now();
    for (const ms of [60_000, 90_000, 30_000, 60_000, -10, 60_000]) await wakeAt?.(now + ms);
    expect(alarms.map((instant) => instant - now)).toEqual([60_000, 30_000, -10, 60_000]);
  });

  it('is set again after a failure', async () => {
    let calls = 0;
    const { wakeAt } = open(() => (++calls === 1 ? Promise.reject(new Error('not now')) : Promise.resolve()));
    await expect(wakeAt?.(Date.now() + 60_000)).rejects.toThrow('not now');
    await wakeAt?.(Date.now() + 60_000);
    expect(calls).toBe(2);
  });
});
