/** Traffic where other parts meet it: repeated starts, webhooks, shared agents, guards under load, texts, deletion. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { callPart, createParts } from '../../src/engine/storage/storage-methods.port.ts';
import { createHandler, type Orchestrator } from '../../src/index.ts';
import { createService, readResponse } from '../http-api/service.ts';
import { order, versions, world } from './world.ts';

const runs = async (orchestrator: Orchestrator, times = 20, input: unknown = {}) => {
  const seen = new Set<unknown>();
  for (let i = 0; i < times; i++) seen.add(((await orchestrator.execute('order', input)).output as { n: unknown }).n);
  return [...seen].sort();
};

describe('repeated starts', () => {
  const inputs = (more: string) => `inputs: { a: { type: number, default: 1 }${more} }\n`;

  it('a repeated start gets the first execution, also where the versions read the input in different ways', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(
      one,
      order(1, 'give', { head: inputs('') }),
      order(2, 'give', { head: inputs(', b: { type: number, default: 2 }') }),
    );
    await one.ensembles.traffic('order', { split: { v1: 50, v2: 50 } });
    for (let key = 0; key < 10; key++) {
      const ids = new Set<string>();
      for (let i = 0; i < 5; i++) ids.add((await one.execute('order', {}, { idempotencyKey: `k${key}` })).id);
      expect(ids.size).toBe(1);
    }
    // Two at once, too.
    const twins = await Promise.all([1, 2, 3].map(() => one.execute('order', {}, { idempotencyKey: 'twin' })));
    expect(new Set(twins.map(({ id }) => id)).size).toBe(1);
  });

  it('a start under an own id is read as the first one was, after the traffic has changed', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(one, order(1), order(2, 'give', { head: 'inputs: { c: { type: string, required: true } }\n' }));
    const first = await one.execute('order', { x: 1 }, { id: 'order-7' });
    await one.ensembles.traffic('order', { version: 'v2' });
    expect(await one.execute('order', { x: 1 }, { id: 'order-7' })).toMatchObject({ id: first.id, output: { n: 1 } });
    await expect(one.execute('order', { x: 2 }, { id: 'order-7' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
  });
});

describe('what executions ran before', () => {
  it('a rollout after a split begins from the version with the largest share', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(one, order(1), order(2), order(3));
    await one.ensembles.traffic('order', { version: 'latest' });
    await one.ensembles.traffic('order', { split: { v1: 90, v2: 10 } });
    await one.ensembles.traffic('order', { version: 'v3', guard: 'failureRate < 2%' });
    expect(await one.ensembles.traffic('order')).toMatchObject({ version: 'v1', split: { v1: 99, v3: 1 } });
    await one.ensembles.traffic('order', { split: { v1: 90, v2: 10 } });
    await expect(one.ensembles.traffic('order', { version: 'v1', guard: 'failureRate < 2%' })).rejects.toMatchObject({
      message: expect.stringContaining('executions run v1 already'),
    });
    await one.ensembles.traffic('order', { version: 'v2', guard: 'failureRate < 2%' });
    expect(await one.ensembles.traffic('order')).toMatchObject({ split: { v1: 99, v2: 1 } });
  });

  it('a guard of equal shares leads to the older version, also after a rollback, and its keys stay where they were', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(one, order(1), order(2));
    await one.ensembles.traffic('order', { version: 'latest' });
    await one.ensembles.rollback('order', { to: 'v1' });
    expect(
      await one.ensembles.traffic('order', { split: { v1: 50, v2: 50 }, guard: 'failureRate < 2%' }),
    ).toMatchObject({ version: 'v1', counts: { v2: { runs: 0 } } });
    const by = '${input.u}';
    await one.ensembles.traffic('order', { split: { v1: 90, v2: 10 }, by });
    const of = async (u: number) => ((await one.execute('order', { u })).output as { n: number }).n;
    const had: number[] = [];
    for (let u = 0; u < 60; u++) if ((await of(u)) === 2) had.push(u);
    await one.ensembles.update('order', order(1), { label: 'hotfix' });
    await one.ensembles.traffic('order', { split: { hotfix: 50, v2: 50 }, by });
    expect(had.length).toBeGreaterThan(0);
    for (const u of had) expect(await of(u)).toBe(2);
  });

  it('`shadow` alone leaves the shares as they are', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(one, order(1), order(2), order(3));
    await one.ensembles.traffic('order', { split: { v1: 90, v2: 10 }, guard: 'failureRate < 2%' });
    expect(await one.ensembles.traffic('order', { shadow: 'v3' })).toMatchObject({
      ...{ version: 'v1', split: { v1: 90, v2: 10 }, guard: 'failureRate < 2%', shadow: 'v3' },
    });
    await one.ensembles.traffic('order', { version: 'v1' });
    expect((await one.ensembles.traffic('order', { shadow: 'v2' })).version).toBe('v1');
    expect(await runs(one, 5)).toEqual([1]);
    await expect(one.ensembles.traffic('order', { shadow: 'v2', by: '${input.u}' })).rejects.toMatchObject({
      message: expect.stringContaining('`by` is about a `version` or a `split`'),
    });
  });

  it('a version that the traffic names is kept, however many are stored after it', async () => {
    const { deploy } = world();
    const one = deploy();
    await versions(one, order(1));
    for (let i = 2; i <= 103; i++) await one.ensembles.update('order', order(i), { label: `v${i}` });
    expect(await one.ensembles.version('order', 'v1')).toMatchObject({ label: 'v1' });
    expect(await runs(one, 3)).toEqual([1]);
    await one.ensembles.traffic('order', { split: { v1: 90, v103: 10 } });
    await expect(one.ensembles.version('order', 'v3')).rejects.toMatchObject({ code: 'VERSION_NOT_FOUND' });
    expect(await one.ensembles.rollback('order', { to: 'v1' })).toMatchObject({ label: 'v1' });
  });
});

describe('shared agents of code', () => {
  it('a version that is named runs with the agents that it had, and a guard counts it', async () => {
    const storage = memoryStorage({ shared: true });
    const { deploy, settle } = world(storage);
    const agent = (script: string) => ({ name: 'say', operation: 'code', config: { script } });
    const first = deploy({ agents: [agent('give')] as never });
    const use = (n: number) =>
      `name: order\nflow: [{ agent: say, input: { n: ${n} } }]\noutputs: { n: "\${say.output}" }`;
    await versions(first, use(1), use(2));
    await first.ensembles.traffic('order', { split: { v1: 50, v2: 50 } });
    const second = deploy({ agents: [agent('fail')] as never });
    expect(await runs(second)).toEqual([1, 2]);
    await second.ensembles.traffic('order', { version: 'v2' });
    expect([await runs(second, 3), await runs(first, 3)]).toEqual([[2], [2]]);
    await settle();
  });
});

describe('guards', () => {
  it('counts what ends while a count is stored, and breaks without another execution', async () => {
    const memory = memoryStorage({ shared: true });
    let gate: Promise<void> | undefined;
    let isWaiting = false;
    const { deploy, settle } = world({
      ...memory,
      ...createParts((part, method) => async (...args) => {
        if (part === 'documents' && method === 'write' && args[0] === 'ensemble-rollout') {
          isWaiting = gate !== undefined;
          await gate;
        }
        return callPart(memory, part, method, args);
      }),
    });
    const one = deploy();
    await versions(one, order(1), order(2, 'fail'));
    const by = '${input.u}';
    await one.ensembles.traffic('order', { split: { v1: 51, v2: 49 }, by, guard: 'failureRate < 3%' });
    let u = 0;
    while ((await one.execute('order', { u })).status !== 'failed') u += 1;
    await settle();
    let open: () => void = () => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    await one.execute('order', { u });
    await settle();
    expect(isWaiting).toBe(true);
    for (let i = 0; i < 3; i++) await one.execute('order', { u });
    gate = undefined;
    open();
    for (let i = 0; i < 4; i++) await settle();
    expect(await one.ensembles.traffic('order')).toMatchObject({ version: 'v1', by: 'guard' });
  });

  it('rolls back although the definition is changed at that moment', async () => {
    const memory = memoryStorage({ shared: true });
    let before: (() => Promise<unknown>) | undefined;
    const { deploy, settle } = world({
      ...memory,
      ...createParts((part, method) => async (...args) => {
        const document = (args[2] as { document?: { value?: { traffic?: { by?: string } } } } | undefined)?.document;
        if (part === 'documents' && method === 'write' && document?.value?.traffic?.by === 'guard') {
          const change = before;
          before = undefined;
          await change?.();
        }
        return callPart(memory, part, method, args);
      }),
    });
    const one = deploy();
    await versions(one, order(1), order(2, 'fail'));
    await one.ensembles.traffic('order', { split: { v1: 51, v2: 49 }, guard: 'failureRate < 2%' });
    const other = deploy();
    before = () => other.ensembles.update('order', order(3), { label: 'v3' });
    for (let i = 0; i < 30; i++) await one.execute('order');
    for (let i = 0; i < 5; i++) await settle();
    expect(before).toBeUndefined();
    expect(await one.ensembles.traffic('order')).toMatchObject({ version: 'v1', by: 'guard' });
    expect((await one.ensembles.get('order')).label).toBe('v3');
  });

  it('does not count retries', async () => {
    const { deploy, settle } = world();
    const one = deploy();
    await versions(one, order(1), order(2, 'fail'));
    await one.ensembles.traffic('order', { split: { v1: 51, v2: 49 }, guard: 'failureRate < 5%' });
    let failed = await one.execute('order');
    while (failed.status !== 'failed') failed = await one.execute('order');
    let { id } = failed;
    for (let i = 0; i < 8; i++) {
      const again = await one.executions.retry(id);
      id = again.id;
      await again.result();
    }
    await settle();
    expect((await one.ensembles.traffic('order')).counts?.v2).toEqual({ runs: 1, failures: 1 });
  });
});

describe('webhooks', () => {
  const hook = (auth: string, rest: string) =>
    `name: order\ntrigger: [{ type: webhook, path: /webhooks/order, ${auth} }]\n${rest}`;
  const call = (orchestrator: Orchestrator, headers: Record<string, string> = {}) =>
    readResponse(
      createHandler(orchestrator).fetch(
        new Request('http://localhost/webhooks/order', {
          ...{ method: 'POST', body: '{}', headers: { 'content-type': 'application/json', ...headers } },
        }),
        { ip: '192.0.2.1' },
      ),
    );
  const flow = (output: string, script = 'give') =>
    `flow: [{ agent: say, operation: code, config: { script: ${script} }, input: { n: 1 } }]\noutputs: { n: '${output}' }\n`;

  it('keeps what the version that runs reads of the request', async () => {
    const one = world().deploy();
    await versions(
      one,
      hook('public: true', flow('${headers["x-foo"] ?? "none"}')),
      hook('public: true', flow('newest')),
    );
    expect((await call(one, { 'x-foo': 'bar' })).body).toMatchObject({ output: { n: 'bar' } });
  });

  it('a process that can not run the newest version does not serve its webhook by the rules of an older one', async () => {
    const storage = memoryStorage({ shared: true });
    const one = world(storage, { env: { KEY: 'a-long-secret-of-a-webhook' } }).deploy();
    const secured = hook('auth: { type: bearer, secret: "${env.KEY}" }', flow('two', 'fail'));
    await versions(one, hook('public: true', flow('one')), secured);
    expect((await call(one)).status).toBe(401);
    const less = world(storage, { scripts: { give: () => 1 }, env: { KEY: 'a-long-secret-of-a-webhook' } }).deploy();
    expect((await call(less)).status).toBe(500);
    expect(await less.webhooks.list()).toEqual([]);
  });

  it('a token that may not start ensembles chooses no version for a webhook, and prepares none', async () => {
    const service = createService({}, { scripts: { give: () => 1 } });
    const { authorization } = await service.bearer('read:ensembles', 'write:ensembles');
    const { ensembles } = service.orchestrator;
    const put = (path: string, body: object) =>
      readResponse(
        service.handler.fetch(
          new Request(`http://localhost/api/v1${path}`, {
            ...{
              method: 'PUT',
              body: JSON.stringify(body),
              headers: { authorization, 'content-type': 'application/json' },
            },
          }),
          { ip: '192.0.2.1' },
        ),
      );
    const good = hook('public: true', flow('good'));
    await ensembles.create(good, { label: 'v1' });
    await ensembles.update('order', hook('public: true', flow('better')), { label: 'v2' });
    const refused = await put('/ensembles/order/traffic', { version: 'v1' });
    expect([refused.status, refused.body.error]).toMatchObject([403, { requiredScope: 'execute:ensembles' }]);
    // Without its webhook, it may be changed, and so may its traffic. The webhook does not come back to that.
    const evil = { name: 'order', flow: [{ agent: 'say', operation: 'code', config: { script: 'give' } }] };
    expect((await put('/ensembles/order?label=evil', evil)).status).toBe(200);
    expect((await put('/ensembles/order/traffic', { version: 'evil' })).status).toBe(200);
    await expect(ensembles.update('order', good)).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('traffic that was set before it had a webhook'),
    });
    await ensembles.traffic('order', { version: 'latest' });
    await ensembles.update('order', good);
  });
});

describe('what is kept', () => {
  it('each text of a version, and nothing of a deleted ensemble or execution', async () => {
    const { deploy, settle, storage } = world();
    const one = deploy();
    const { ensembles } = one;
    await ensembles.create(`# one\n${order(1)}`, { label: 'v1' });
    await ensembles.update('order', order(2), { label: 'v2' });
    await ensembles.update('order', `# three\n${order(1)}`, { label: 'v3' });
    await ensembles.update('order', order(4), { label: 'v4' });
    const text = async (ref: string) => (await ensembles.version('order', ref)).text?.split('\n')[0];
    expect([await text('v1'), await text('v3')]).toEqual(['# one', '# three']);
    await ensembles.rollback('order', { to: 'v3' });
    expect(await text('latest')).toBe('# three');
    // A text with other comments is the same version, under its label.
    const commented = await ensembles.update('order', `# again\n${order(1)}`, { message: 'comments' });
    expect(commented).toMatchObject({ label: 'v3' });
    expect((await ensembles.versions('order'))[0]).toMatchObject({ message: 'comments', version: commented.version });

    const other = order(1).replace("'${say.output}'", "'${say.output + 1}'");
    await ensembles.update('order', other, { label: 'v5' });
    await ensembles.traffic('order', { split: { v1: 99, v5: 1 }, guard: 'failureRate < 50%', shadow: 'v5' });
    const { id } = await one.execute('order', { mail: 'ada@example.org' }, { id: 'order-1' });
    await one.execute('order');
    await settle();
    expect((await ensembles.traffic('order')).shadowed?.differences.length).toBeGreaterThan(0);
    await storage.executions.delete([id]);
    const { differences } = (await ensembles.traffic('order')).shadowed ?? {};
    expect(differences?.map(({ executionId }) => executionId)).not.toContain(id);
    await ensembles.delete('order');
    for (const kind of ['ensemble-shadow', 'ensemble-rollout', 'ensemble-version'])
      expect(await storage.documents.list(kind, { limit: 100, now: 0 })).toEqual([]);
  });

  it('a version that could not be loaded once can be later', async () => {
    const { deploy } = world();
    const one = deploy();
    await one.ensembles.create('name: kid\nflow: []\noutputs: { n: 7 }');
    await versions(one, order(1), 'name: order\nflow: [{ ensemble: kid, name: k }]\noutputs: { n: "${k.output.n}" }');
    await one.ensembles.traffic('order', { version: 'v2' });
    await one.ensembles.delete('kid');
    const other = deploy();
    await other.execute('order').catch(() => undefined);
    await one.ensembles.create('name: kid\nflow: []\noutputs: { n: 7 }');
    expect(await runs(other, 2)).toEqual([7]);
  });

  it('refuses labels that look like ids of executions, and options of a wrong type', async () => {
    const one = world().deploy();
    await expect(one.ensembles.create(order(1), { label: 'exec-7' })).rejects.toMatchObject({
      code: 'INVALID_REQUEST',
    });
    await versions(one, order(1), order(2));
    const traffic = one.ensembles.traffic as (name: string, given: unknown) => Promise<unknown>;
    for (const given of [{ version: ['v2'] }, { version: 'v2', guard: 'failureRate < 2%', steps: 5 }, { shadow: 7 }])
      await expect(traffic('order', given)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });
});

describe('a version as its own shadow', () => {
  const flows: Readonly<Record<string, string>> = {
    'a wait with a name': '[{ wait: go, name: g }]',
    'a child with a name': '[{ ensemble: child, name: k }, { ensemble: child, name: d, detached: true }]',
    'the time': '[{ agent: a, operation: code, config: { script: give }, input: { n: "${now()}" } }]',
    'the first of several branches':
      '[{ parallel: [{ agent: a, operation: code, config: { script: slow } }, { agent: b, operation: code, config: { script: give }, input: { n: 2 } }], waitFor: any, name: p }]',
    'a loop':
      '[{ foreach: [1, 2, 3], concurrency: 2, steps: [{ agent: a, operation: code, config: { script: give }, input: { n: "${item}" } }], name: l }]',
    'a failure in a branch':
      '[{ parallel: [{ agent: a, operation: code, config: { script: fail } }, { agent: b, operation: code, config: { script: slow } }], name: p }]',
  };
  it.each(Object.entries(flows))('has no difference: %s', async (_what, flow) => {
    const { clock, deploy, settle } = world();
    const one = deploy({
      scripts: {
        give: ({ input }) => (input as { n: number }).n,
        slow: async ({ signal }) => {
          await clock.sleep(50, signal);
          return 1;
        },
        fail: () => {
          throw new Error('no');
        },
      },
    });
    await one.ensembles.create('name: child\nflow: []\noutputs: { n: 1 }');
    await one.ensembles.update(
      'child',
      'name: child\ninputs: { x: { type: number, default: 1 } }\nflow: []\noutputs: { n: 1 }',
      { label: 'c2' },
    );
    await one.ensembles.create(`name: order\nflow: ${flow}\noutputs: { at: "\${now()}" }`, { label: 'v1' });
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v1' });
    const { id } = await one.start('order');
    for (let i = 0; i < 4; i++) await settle();
    if ((await one.executions.status(id)).status === 'waiting') await one.executions.signal(id, 'go', 1);
    for (let i = 0; i < 4; i++) await settle();
    expect((await one.ensembles.traffic('order')).shadowed).toEqual({
      runs: 1,
      different: 0,
      left: 0,
      differences: [],
    });
  });

  it('what could not be stored is stored later', async () => {
    const memory = memoryStorage({ shared: true });
    let isAway = false;
    const { deploy, settle } = world({
      ...memory,
      ...createParts((part, method) => async (...args) => {
        if (isAway && method === 'write' && args[0] === 'ensemble-shadow') throw new Error('connection lost');
        return callPart(memory, part, method, args);
      }),
    });
    const one = deploy();
    await versions(one, order(1), order(2));
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v2' });
    isAway = true;
    await one.execute('order');
    await settle();
    isAway = false;
    await settle(5_000);
    expect((await one.ensembles.traffic('order')).shadowed).toMatchObject({ runs: 1 });
  });

  it('a storage that does not answer is no difference', async () => {
    const memory = memoryStorage({ shared: true });
    let isAway = false;
    const storage: Storage = {
      ...memory,
      ...createParts((part, method) => async (...args) => {
        if (isAway && part === 'executions' && method === 'getStatus') throw new Error('connection lost');
        return callPart(memory, part, method, args);
      }),
    };
    const { deploy, settle } = world(storage);
    const one = deploy();
    await versions(one, order(1), order(2));
    await one.ensembles.traffic('order', { version: 'v1', shadow: 'v2' });
    await one.execute('order');
    isAway = true;
    await settle();
    isAway = false;
    const { shadowed } = await one.ensembles.traffic('order');
    expect(shadowed).toMatchObject({ different: 0, differences: [] });
  });
});
