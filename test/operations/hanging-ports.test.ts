/** Ports that never answer, and do not obey their signals: their timeouts run on the clock of the orchestrator. */

import { describe, expect, it } from 'vitest';
import {
  createTestOrchestrator,
  type StubHttp,
  stubHttp,
  type TestOrchestratorOptions,
} from '../../src/entries/testing.ts';

const never = () => new Promise<never>(() => {});
const hanging: () => StubHttp = () => stubHttp({ '*': never });
const model = { generate: never };
const agents: Readonly<Record<string, readonly [string, TestOrchestratorOptions]>> = {
  api: ['{ url: "https://a.example/x?y=1", timeout: 9s }', { http: hanging() }],
  email: [
    '{ from: a@a.example, to: b@a.example, subject: s, body: b, timeout: 9s }',
    { mail: { own: { send: never } } },
  ],
  pdf: ['{ html: <p>, timeout: 9s }', { pdf: { render: never } }],
  think: ['{ model: m, prompt: p, timeout: 9s }', { models: { own: model } }],
  tools: [
    '{ mcp: shop, tool: find, timeout: 9s }',
    { mcpServers: { shop: { url: 'https://shop.example/' } }, http: hanging() },
  ],
  sms: ['{ to: "+48123456789", body: b }', { sms: { own: { send: never } } }],
};

describe('a port that never answers', () => {
  it.each(Object.entries(agents))(
    'ends at the timeout of `%s` on the manual clock, which advances by itself after that',
    async (operation, [config, options]) => {
      const flow = `flow:
  - { agent: call, operation: ${operation}, config: ${config} }
  - { agent: after, operation: code, config: { script: flaky }, condition: "\${call.failed}", retry: { maxAttempts: 2 } }`;
      let calls = 0;
      const flaky = () => {
        calls += 1;
        if (calls === 1) throw new Error('not yet');
      };
      const { orchestrator, clock } = createTestOrchestrator({
        ...options,
        scripts: { flaky },
        ensembles: [`name: e\n${flow}`],
      });
      const { id, result } = await orchestrator.start('e');
      const ms = operation === 'sms' ? 30_000 : 9_000;
      await clock.advance(ms - 1);
      expect((await orchestrator.executions.get(id)).agents).toEqual([]);
      await clock.advance(1);
      const run = await result();
      expect(run.agents[0]?.error).toMatchObject({ code: 'TIMEOUT' });
      expect([run.status, run.duration]).toEqual(['completed', ms + 1_000]);
    },
  );

  it('ends the attempt of a delivery at its timeout', async () => {
    const notify =
      'notifications:\n  - { type: webhook, url: "https://hook.example/", events: [execution.completed], timeout: 7s }\n';
    const http = hanging();
    const { orchestrator, clock } = createTestOrchestrator({ http, ensembles: [`name: e\n${notify}flow: []`] });
    await orchestrator.ready();
    const { id } = await orchestrator.execute('e');
    await clock.advance(0);
    const attempts = async () => {
      const [delivery] = (await orchestrator.deliveries.list({ execution: id })).deliveries;
      const { attempts = [] } = delivery ? await orchestrator.deliveries.get(delivery.id) : {};
      return attempts.map(({ error }) => error);
    };
    expect([http.calls.length, await attempts()]).toEqual([1, []]);
    await clock.advance(7_000);
    expect(await attempts()).toEqual([
      'POST https://hook.example/ took longer than 7000 ms; raise its timeout or look at the peer',
    ]);
  });

  it('also a script whose agent has run out of time holds no clock', async () => {
    const flow = `flow:
  - { agent: call, operation: code, config: { script: hang }, timeout: 9s }
  - { sleep: 1h, name: pause, condition: "\${call.failed}" }`;
    const { orchestrator, clock } = createTestOrchestrator({
      scripts: { hang: never },
      ensembles: [`name: e\n${flow}`],
    });
    const { result } = await orchestrator.start('e');
    await clock.advance(9_000);
    expect((await result()).duration).toBe(3_609_000);
  });
});
