/** The storage suite refuses a storage that loses or damages anything when it is opened again. */

import { describe, expect, it } from 'vitest';
import type { CommitEntry, NewExecution, Release, StepRecord } from '../../src/engine/execution/stored-execution.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { storageSuite } from '../../src/entries/conformance.ts';
import type { StorageChanges } from '../../src/testing-kit/processes/change-storage.ts';
import { type Fault, replayedStorage } from './replayed-storage.ts';

/** Runs the cases that open a store again. @returns the group of each case that fails */
async function failingGroups(fault: Fault): Promise<readonly string[]> {
  const groups: string[] = [];
  const cases: { readonly group: string; readonly run: () => Promise<void> }[] = [];
  storageSuite({
    name: 'x',
    ...replayedStorage(fault),
    workers: 'many',
    handles: 'one',
    test: {
      describe(title, body) {
        groups.push(title);
        body();
        groups.pop();
      },
      it(title, run) {
        if (title.startsWith('reopen: ')) cases.push({ group: groups.at(-1) as string, run });
      },
    },
  });
  expect(cases.length).toBeGreaterThan(15);
  const failed = new Set<string>();
  for (const { group, run } of cases) await run().catch(() => failed.add(group));
  return [...failed];
}

/** Calls of a method are lost. */
const loses = (method: string): Fault => ({ repeat: (call) => (call.method === method ? undefined : call) });

/** The arguments of a method are stored otherwise. */
const damages = (method: string, change: (...args: never[]) => readonly unknown[]): Fault => ({
  repeat: (call) => (call.method === method ? { method, args: change(...(call.args as never[])) } : call),
});

const entries = (change: (entry: CommitEntry) => CommitEntry): Fault =>
  damages('commit', (worker: string, batch: readonly CommitEntry[]) => [worker, batch.map(change)]);

const starts = (change: (start: NewExecution) => Partial<NewExecution>): Fault =>
  entries((entry) => (entry.start ? { ...entry, start: { ...entry.start, ...change(entry.start) } } : entry));

const steps = (change: (steps: readonly StepRecord[]) => readonly StepRecord[]): Fault =>
  entries((entry) => ({ ...entry, steps: change(entry.steps) }));

const errors = (key: 'details' | 'stack'): Fault =>
  steps((all) => all.map((step) => (step.error ? { ...step, error: without(step.error, key) } : step)));

const releases = (change: (release: Release) => Release): Fault =>
  entries((entry) => (entry.release ? { ...entry, release: change(entry.release) } : entry));

const without = <T extends object>(value: T, key: keyof T): T => {
  const { [key]: _left, ...rest } = value;
  return rest as T;
};

const answers = (answer: (storage: Storage) => StorageChanges): Fault => ({ answer });

/** The claimed executions are answered otherwise. */
const claims = (change: object): Fault =>
  answers((storage) => ({
    executions: {
      claim: async (worker, query) =>
        (await storage.executions.claim(worker, query)).map((claimed) => ({ ...claimed, ...change })),
    },
  }));

/** Each fault, by the group of the suite that must find it. */
const FAULTS: Readonly<Record<string, Readonly<Record<string, Fault>>>> = {
  workers: {
    'loses the workers': loses('workers.register'),
    'loses the end of a worker': loses('workers.reclaimFromDead'),
    'loses who holds an execution': answers(() => ({ workers: { listHeld: () => [] } })),
    'loses epochs': claims({ epoch: 1 }),
    'loses recoveries': claims({ recoveries: 0 }),
    'loses blame': claims({ blame: 0 }),
  },
  executions: {
    'loses claims': loses('executions.claim'),
    'loses claims by id': loses('executions.take'),
    'loses requests for cancellation': loses('executions.requestCancel'),
    'brings deleted executions back': loses('executions.purge'),
    'loses deletions': loses('executions.delete'),
    'loses the trigger': starts(() => ({ trigger: { type: 'call' } })),
    'loses the deadline': starts(() => ({ deadlineAt: 1 })),
    'loses the version': starts(() => ({ version: '' })),
    'loses nulls of the input': starts(({ input }) => ({
      input: JSON.parse(JSON.stringify(input).replace('null', '0')),
    })),
    'loses idempotency keys': starts(() => ({ idempotencyKey: 'other' })),
    'loses tags': starts(({ tags }) => (tags ? { tags: tags.slice(1) } : {})),
    'loses steps': steps(() => []),
    'loses decisions': steps((all) => all.filter(({ note }) => !note)),
    'loses the order of steps': steps((all) => [...all].reverse()),
    'loses errors of steps': steps((all) => all.map((step) => without(step, 'error'))),
    'loses the details of errors': errors('details'),
    'loses the stack of errors': errors('stack'),
    'loses the instant of the next attempt': steps((all) => all.map((step) => without(step, 'retryAt'))),
    'damages texts': steps((all) => JSON.parse(JSON.stringify(all).replaceAll('漢', '?'))),
    'loses the end': entries((entry) => without(entry, 'end')),
    'loses when it is due': releases((release) => ({ ...release, dueAt: 0 })),
    'loses what the last run left': releases((release) => without(release, 'handover')),
    'loses how long an execution waited': entries((entry) =>
      entry.end ? { ...entry, end: without(entry.end, 'waited') } : entry,
    ),
    'loses the status': releases((release) => ({ ...release, status: 'running' })),
  },
  signals: {
    'loses signals': loses('signals.put'),
    'loses the order of signals': answers(({ signals }) => ({
      signals: { list: async (...args) => [...(await signals.list(...args))].sort((a, b) => (a.id < b.id ? -1 : 1)) },
    })),
    'loses which signals an execution waits for': releases((release) => without(release, 'waitsFor')),
    'loses how many signals the worker has seen': releases((release) => ({ ...release, signals: 9 })),
    'loses payloads': damages('signals.put', (signal: object) => [{ ...signal, payload: null }]),
  },
  state: {
    'loses states': entries((entry) => without(entry, 'state')),
    'loses versions': answers(({ state }) => ({
      state: {
        read: async (ensemble) => {
          const found = await state.read(ensemble);
          return found && { ...found, version: 1 };
        },
      },
    })),
    'loses the instant of the change': entries((entry) =>
      entry.state ? { ...entry, state: { ...entry.state, updatedAt: 0 } } : entry,
    ),
  },
  schedules: {
    'loses schedules': loses('schedules.advance'),
    'loses names': damages('schedules.advance', (name: string, change: object) => [name.replace('ä', '?'), change]),
    'loses the instant of the change': damages('schedules.advance', (name: string, change: object) => [
      name,
      { ...change, updatedAt: 0 },
    ]),
  },
  definitions: {
    'loses definitions': loses('definitions.put'),
    'loses what a definition needs': damages('definitions.put', (one: object) => [{ ...one, needs: [] }]),
  },
  tokens: {
    'loses tokens': loses('tokens.put'),
    'loses the last use': loses('tokens.touch'),
    'brings deleted tokens back': loses('tokens.delete'),
    'loses the expiry': damages('tokens.put', (token: { expiresAt?: number }) => [without(token, 'expiresAt')]),
    'damages the digest': damages('tokens.put', (token: { digest: string }) => [
      { ...token, digest: token.digest.replace(/^00/, '01') },
    ]),
  },
  kv: {
    'loses values': loses('kv.put'),
    'brings deleted keys back': loses('kv.delete'),
    'loses the expiry': damages('kv.put', (key: string, value: unknown) => [key, value]),
    'keeps an expiry that was removed': {
      repeat: (call) => (call.method === 'kv.put' && call.args[1] === null && !call.args[2] ? undefined : call),
    },
    'damages texts': damages('kv.put', (key: string, value: unknown, expiresAt: unknown) => [
      key,
      JSON.parse(JSON.stringify(value).replaceAll('漢', '?')),
      expiresAt,
    ]),
    'damages keys': damages('kv.put', (key: string, ...rest: unknown[]) => [key.toLowerCase(), ...rest]),
  },
  objects: {
    'loses objects': loses('objects.put'),
    'brings deleted objects back': loses('objects.delete'),
    'damages bytes that are not UTF-8': damages('objects.put', (key: string, object: { content: Uint8Array }) => [
      key,
      { ...object, content: new TextEncoder().encode(new TextDecoder().decode(object.content)) },
    ]),
    'loses the type': damages('objects.put', (key: string, object: object) => [key, { ...object, contentType: '' }]),
    'loses the instant': damages('objects.put', (key: string, object: object) => [key, { ...object, updatedAt: 0 }]),
  },
  commits: {
    'loses signals of entries': entries((entry) => without(entry, 'signals')),
    'loses the seed': starts(() => ({ seed: 'f'.repeat(32) })),
    'loses entries after the first of a batch': damages('commit', (worker: string, batch: readonly CommitEntry[]) => [
      worker,
      batch.slice(0, 1),
    ]),
  },
};

describe('the storage suite, opening a store again', () => {
  it('passes a storage that loses nothing', async () => {
    expect(await failingGroups({})).toEqual([]);
  });

  for (const [group, faults] of Object.entries(FAULTS)) {
    for (const [what, fault] of Object.entries(faults)) {
      it(`${group}: fails a storage that ${what}`, async () => {
        expect(await failingGroups(fault)).toContain(group);
      });
    }
  }
});
