/** Secrets in responses: masked by value in every response, event and log line; the stored values do not change. */

import { describe, expect, it } from 'vitest';
import { createApiHandler } from '../../src/http-handlers/create-api-handler.ts';
import { HOSTS } from './hosts.ts';
import { createService, post, readResponse } from './service.ts';

const SECRET = 'pl4nted "quoted" \\ ümläut';
const ENSEMBLES = [
  {
    name: 'leak',
    flow: [{ agent: 'give', operation: 'code', config: { script: 'give' }, input: { key: 'key ${env.KEY}' } }],
    outputs: { said: '${give.output}' },
  },
];
const scripts = {
  give: () => ({
    plain: `key ${SECRET}`,
    [SECRET]: 1,
    listed: [{ url: `https://peer.example/${encodeURIComponent(SECRET)}` }],
    n: 12_345_678,
  }),
};
const MASKED = { plain: 'key ***', '***': 1, listed: [{ url: 'https://peer.example/***' }], n: 12_345_678 };

describe.each(HOSTS)('responses by $host', ({ open }) => {
  it('records, pages, outputs and events are masked, and stay JSON; the stored result is the real one', async () => {
    const service = createService({}, { ensembles: ENSEMBLES, scripts, secrets: { KEY: SECRET, DIGITS: '12345678' } });
    const ask = await open(service.handler);
    const headers = await service.bearer('execute:ensembles', 'read:executions');
    const ran = await readResponse(ask('/api/v1/execute/ensemble/leak', post({}, headers)));
    expect(ran.body.output).toEqual({ said: MASKED });
    const id = ran.body.executionId;
    const record = await readResponse(ask(`/api/v1/executions/${id}`, { headers }));
    expect(record.body).toMatchObject({ id, output: { said: MASKED } });
    for (const path of [
      `/api/v1/executions/${id}`,
      '/api/v1/executions',
      `/api/v1/executions/${id}/agents`,
      `/api/v1/executions/${id}/events`,
      `/api/v1/executions/${id}/steps/flow[0]/input`,
    ]) {
      const response = await (await ask(path, { headers })).text();
      expect([path, response]).toEqual([path, expect.stringContaining('***')]);
      expect(response).not.toMatch(/pl4nted|ml.{1,6}ut/);
    }
    expect((await service.orchestrator.executions.get(id)).output).toEqual({ said: scripts.give() });
  });

  it('a token is shown whole, once', async () => {
    const service = createService({}, { secrets: { KEY: SECRET } });
    const ask = await open(service.handler);
    const admin = await service.bearer('admin');
    const made = await readResponse(
      ask('/api/v1/tokens', post({ name: `for ${SECRET}`, scopes: ['read:executions'] }, admin)),
    );
    expect(made.body).toMatchObject({ name: 'for ***' });
    const own = { authorization: `Bearer ${made.body.token}` };
    expect((await ask('/api/v1/executions', { headers: own })).status).toBe(200);
  });

  it("a secret in a request is masked in the response that refuses it, and in the handler's log", async () => {
    const service = createService({}, { secrets: { KEY: 'abcdefghijkl' } });
    const ask = await open(service.handler);
    const headers = await service.bearer('execute:ensembles');
    const refused = await readResponse(ask('/api/v1/execute/ensemble/echo', post({ abcdefghijkl: 1 }, headers)));
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).not.toContain('abcdefghijkl');
    service.orchestrator.tokens.verify = () => Promise.reject(new Error('the store at abcdefghijkl is unreachable'));
    expect((await ask('/api/v1/executions', { headers })).status).toBe(500);
    expect(service.log).toMatchObject([
      { level: 'error', fields: { err: { message: 'the store at *** is unreachable' } } },
    ]);
  });

  it('the page of a signal link masks its payload, and a link in a response is masked itself', async () => {
    const signalLinks = { url: 'https://flows.example', secret: 'a secret that nobody can guess, 1' };
    const config = { script: 'echo' };
    const asking = {
      name: 'ask',
      flow: [
        { agent: 'link', operation: 'code', config, input: { to: "${signalUrl('go', input.note)}" } },
        { wait: 'go' },
      ],
    };
    const service = createService({}, { ensembles: [asking], signalLinks, secrets: { KEY: 'pl4nted<secret>' } });
    const ask = await open(service.handler);
    const run = await service.orchestrator.start('ask', { note: 'my pl4nted<secret>' });
    await service.clock.advance(0);
    const headers = await service.bearer('read:executions');
    const { body } = await readResponse(ask(`/api/v1/executions/${run.id}`, { headers }));
    expect(body.agents[0].output).toEqual({ to: 'https://flows.example/signals/***' });
    const { agents } = await service.orchestrator.executions.get(run.id);
    const [to = ''] = agents.map(({ output }) => (output as { readonly to: string }).to);
    const page = await (await ask(new URL(to).pathname)).text();
    expect(page).toContain('my ***');
    expect(page).not.toContain('pl4nted');
  });

  it('an orchestrator that is spread into another object masks too', async () => {
    const { orchestrator } = createService({}, { secrets: { KEY: 'pl4nted-secret' } });
    const ask = await open(createApiHandler({ ...orchestrator }));
    const { token } = await orchestrator.tokens.create({ name: 'pl4nted-secret', scopes: ['admin'] });
    const listed = await readResponse(ask('/api/v1/tokens', { headers: { authorization: `Bearer ${token}` } }));
    expect(listed.body.tokens).toMatchObject([{ name: '***' }]);
  });

  it("an error of the handler's logger does not change the response", async () => {
    const write = () => {
      throw new Error('the disk is full');
    };
    const service = createService({ logger: { debug: write, info: write, warn: write, error: write } });
    const ask = await open(service.handler);
    service.orchestrator.tokens.verify = () => Promise.reject(new Error('away'));
    expect(
      (await ask('/api/v1/executions', { headers: { authorization: `Bearer sk-service-${'a'.repeat(40)}` } })).status,
    ).toBe(500);
  });
});
