/** Engines and storages that decide where an execution is kept: by its id, and by where its records are read. */

import { describe, expect, it } from 'vitest';
import type { ExecutionEngine } from '../../src/engine/execution/execution-engine.port.ts';
import { createOrchestrator, embeddedEngine, memoryStorage } from '../../src/index.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';

const ENSEMBLES = [
  { name: 'parent', flow: [{ ensemble: 'child' }] },
  { name: 'child', flow: [{ agent: 'a', operation: 'code', config: { script: 'one' } }] },
];
const scripts = { one: () => 1 };

/** @param change - what the engine has in addition */
function engineWith(change: (attached: ReturnType<ExecutionEngine['attach']>) => object): ExecutionEngine {
  const engine = embeddedEngine();
  return {
    attach(host) {
      const attached = engine.attach(host);
      return Object.defineProperties(Object.create(attached), Object.getOwnPropertyDescriptors(change(attached)));
    },
  };
}

describe('the id of an execution', () => {
  it('is one that the storage accepts, also for a child and a retry', async () => {
    const asked: string[] = [];
    const accepts = (id: string) => {
      asked.push(id);
      return /[02468]$/.test(id);
    };
    const orchestrator = createOrchestrator({
      ensembles: [
        ...ENSEMBLES,
        { name: 'fails', flow: [{ agent: 'a', operation: 'code', config: { script: 'fails' } }] },
      ],
      scripts: { ...scripts, fails: () => Promise.reject(new Error('no')) },
      storage: { ...memoryStorage(), accepts },
    });
    for (let run = 0; run < 10; run++) await orchestrator.execute('parent');
    const failed = await orchestrator.execute('fails');
    await (await orchestrator.executions.retry(failed.id)).result();
    const { executions } = await orchestrator.executions.list({ limit: 100 });
    expect(executions).toHaveLength(22);
    expect(executions.filter(({ id }) => !/[02468]$/.test(id))).toEqual([]);
    expect(asked.length).toBeGreaterThan(22);
  });

  it('comes from the engine, which is told the ensemble', async () => {
    let count = 0;
    const names: string[] = [];
    const engine = engineWith(() => ({
      newId(ensemble: string) {
        names.push(ensemble);
        return `exec_${String(++count).padStart(26, '0')}`;
      },
    }));
    const orchestrator = createOrchestrator({ ensembles: ENSEMBLES, scripts, engine });
    const { id } = await orchestrator.execute('parent');
    expect([id, names]).toEqual([`exec_${'1'.padStart(26, '0')}`, ['parent', 'child']]);
  });

  it('is refused with INTERNAL if the storage accepts none', async () => {
    const orchestrator = createOrchestrator({
      ensembles: ENSEMBLES,
      scripts,
      storage: { ...memoryStorage(), accepts: () => false },
    });
    await expect(orchestrator.execute('child')).rejects.toMatchObject({
      code: 'INTERNAL',
      message: 'the storage accepted none of 10000 new ids of executions',
    });
  });
});

describe('the records of an engine that keeps them elsewhere', () => {
  it('are what executions, events and links read', async () => {
    const elsewhere = memoryStorage();
    const inner = createOrchestrator({ ensembles: ENSEMBLES, scripts, storage: elsewhere });
    const { id } = await inner.execute('child');
    const unread = () => {
      throw new Error('the storage of the host has no executions');
    };
    const storage = changeStorage(memoryStorage(), {
      executions: { get: unread, getStatus: unread, list: unread, listSteps: unread, getStep: unread },
    });
    const engine = engineWith(() => ({ records: elsewhere }));
    const { executions } = createOrchestrator({ ensembles: ENSEMBLES, scripts, storage, engine });
    expect((await executions.get(id)).status).toBe('completed');
    expect((await executions.list()).executions.map((record) => record.id)).toEqual([id]);
    expect((await executions.agents(id)).agents).toHaveLength(1);
    const kinds: string[] = [];
    for await (const { event } of executions.events(id)) kinds.push(event.event);
    expect(kinds).toEqual(['execution.started', 'agent.completed', 'execution.completed']);
  });
});
