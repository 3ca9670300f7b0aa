/**
 * Requests and starts with limits. Arguments: `hono` (a bare route), `usage` (an authenticated, limited `GET /usage` through the handler),
 * or `start` (an execution without a step), then the storage, and for a start whether it has limits.
 */

import { Hono } from 'hono';
import { importLibrary } from '../library.mjs';
import { storageOf, together } from '../storages.mjs';

const PLAN = { requests: 1_000_000_000, executions: 1_000_000_000, concurrent: 1000 };

export async function setup([what, kind = 'memory', limits]) {
  if (what === 'hono') return bareRoute();
  const { createHandler, createOrchestrator } = await importLibrary();
  const storage = await storageOf(kind);
  const orchestrator = createOrchestrator({ ensembles: ['name: bench\nflow: []'], ...(storage && { storage }) });
  await orchestrator.ready();
  const { token } = await orchestrator.tokens.create({ name: 'bench', scopes: ['admin'], plan: PLAN });
  if (what === 'start') {
    const options = limits === 'limited' ? { principal: await orchestrator.tokens.verify(token) } : {};
    return together(async () => {
      const { status } = await orchestrator.execute('bench', {}, options);
      if (status !== 'completed') throw new Error(`the status of the run is ${status}`);
    });
  }
  const handler = createHandler(orchestrator);
  const init = { headers: { authorization: `Bearer ${token}` } };
  const ask = async () => {
    const response = await handler.fetch(new Request('http://localhost/api/v1/usage', init), { ip: '192.0.2.1' });
    if (response.status !== 200 || (await response.json()).requests.used === 0) throw new Error('it was not counted');
  };
  return kind === 'memory' ? { run: ask } : together(ask);
}

function bareRoute() {
  const app = new Hono();
  const used = { used: 1, limit: 100, remaining: 99 };
  app.get('/usage', (context) => context.json({ period: { start: 0, end: 1 }, requests: used, executions: used }));
  return {
    async run() {
      const response = await app.fetch(
        new Request('http://localhost/usage', { headers: { authorization: 'Bearer none' } }),
      );
      if ((await response.json()).requests.used !== 1) throw new Error('a wrong answer');
    },
  };
}
