/** The names of signals: only a name that a `wait` of the execution's own definition has is accepted. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createService, post, readResponse } from '../http-api/service.ts';

const ask = (flow: unknown, more: object = {}) => ({ name: 'ask', flow, ...more }) as never;
const begin = async (flow: unknown, storage: Storage = memoryStorage()) => {
  const orchestrator = createTestOrchestrator({ ensembles: [ask(flow)], storage });
  const run = await orchestrator.start('ask');
  await orchestrator.clock.advance(0);
  return { orchestrator, run, send: (name: string) => orchestrator.executions.signal(run.id, name) };
};

describe('a signal', () => {
  it('that no `wait` takes is refused with the nearest name and all names, and nothing is stored', async () => {
    const { send, run, orchestrator } = await begin([{ wait: 'approved' }, { wait: 'payment-received' }]);
    const failure = await send('aproved').catch((error) => error);
    expect(failure).toMatchObject({
      code: 'INVALID_INPUT',
      message:
        'no `wait` of `ask` takes a signal `aproved`; did you mean `approved`? its waits take `approved`, `payment-received`',
      details: { waits: ['approved', 'payment-received'] },
    });
    await orchestrator.clock.advance(0);
    expect((await orchestrator.executions.get(run.id)).status).toBe('waiting');
  });

  it('is accepted for a `wait` at any depth of the flow, before the flow reaches it', async () => {
    const names = ['then', 'else', 'case', 'default', 'while', 'foreach', 'parallel', 'try', 'catch', 'finally'];
    const [inThen, inElse, inCase, inDefault, inWhile, inForeach, inParallel, inTry, inCatch, inFinally] = names.map(
      (wait) => [{ wait }],
    );
    const { send } = await begin([
      { wait: 'first' },
      { if: '${true}', then: inThen, else: inElse },
      { switch: '${input.x}', cases: { a: inCase }, default: inDefault },
      { while: '${false}', steps: inWhile },
      { foreach: [1], steps: inForeach },
      { parallel: [...(inParallel ?? []), { sleep: 1 }] },
      { try: inTry, catch: inCatch, finally: inFinally },
    ]);
    for (const name of names) await send(name);
    await expect(send('elsewhere')).rejects.toMatchObject({ code: 'INVALID_INPUT' });
  });

  it('is refused for an ensemble that has no `wait`', async () => {
    const { send } = await begin([{ sleep: '1h' }]);
    await expect(send('go')).rejects.toThrow('no `wait` of `ask` takes a signal `go`; it has no `wait`');
  });

  it('is checked against the definition with which the execution began, not against the current one', async () => {
    const storage = { ...memoryStorage(), close() {} };
    const { run } = await begin([{ wait: 'old' }], storage);
    const today = createTestOrchestrator({ ensembles: [ask([{ wait: 'new' }])], storage });
    await expect(today.executions.signal(run.id, 'new')).rejects.toMatchObject({ details: { waits: ['old'] } });
    expect(await today.executions.signal(run.id, 'old')).toMatchObject({ id: run.id });
  });

  it('goes to the named execution only: a child has its own names, and the end of a child is no caller’s signal', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        { name: 'parent', flow: [{ ensemble: 'child' }, { wait: 'outer' }] },
        { name: 'child', flow: [{ wait: 'inner' }] },
      ] as never,
    });
    const { executions, clock } = orchestrator;
    const parent = await orchestrator.start('parent');
    await clock.advance(0);
    const [child] = (await executions.list({ parentId: parent.id })).executions;
    await expect(executions.signal(parent.id, 'inner')).rejects.toMatchObject({ details: { waits: ['outer'] } });
    await executions.signal(child?.id as string, 'inner');
    await executions.signal(parent.id, 'outer');
    await clock.advance(0);
    expect((await executions.get(parent.id)).status).toBe('completed');
  });

  it('is accepted with any name when the definition is not stored', async () => {
    const memory = memoryStorage();
    const definitions = { ...memory.definitions, get: () => undefined };
    const { send } = await begin([{ wait: 'approved' }], { ...memory, definitions });
    expect(await send('other')).toMatchObject({ status: 'waiting' });
  });

  it('to an execution that has ended is CONFLICT, whatever its name is', async () => {
    const { send, run, orchestrator } = await begin([{ wait: 'approved' }]);
    await orchestrator.executions.cancel(run.id);
    await orchestrator.clock.advance(0);
    await expect(send('other')).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  it('costs one read of the definition for each version', async () => {
    const memory = memoryStorage();
    let reads = 0;
    const get = (version: string) => {
      reads += 1;
      return memory.definitions.get(version);
    };
    const { send } = await begin([{ wait: 'a' }, { wait: 'b' }], {
      ...memory,
      definitions: { ...memory.definitions, get },
    });
    const before = reads;
    await send('b');
    await send('b');
    await send('other').catch(() => {});
    expect(reads - before).toBe(1);
  });
});

describe('over HTTP', () => {
  const refusal = async (...scopes: Parameters<ReturnType<typeof createService>['bearer']>) => {
    const service = createService({}, { ensembles: [ask([{ wait: 'approved' }])] });
    const run = await service.orchestrator.start('ask');
    await service.clock.advance(0);
    const headers = await service.bearer(...scopes);
    const url = `http://test/api/v1/executions/${run.id}/signals/aproved`;
    return readResponse(service.handler.fetch(new Request(url, post({}, headers))));
  };

  it('the refusal is 400 with the names', async () => {
    expect(await refusal('execute:ensembles', 'read:executions')).toMatchObject({
      status: 400,
      body: {
        error: {
          code: 'INVALID_INPUT',
          message: expect.stringContaining('did you mean `approved`'),
          waits: ['approved'],
        },
      },
    });
  });

  it('a caller that may read neither definitions nor records does not see the names', async () => {
    const { status, body } = await refusal('execute:ensembles');
    expect(status).toBe(400);
    expect(JSON.stringify(body)).not.toContain('approved');
  });
});
