/** The refund desk: an app in Hono with its own login, its own table, and refunds that an ensemble carries out. */
import { readFileSync } from 'node:fs';
import { getConnInfo } from '@hono/node-server/conninfo';
import { createHandler, defineScript } from 'ensemble-orchestrator';
import { Hono } from 'hono';
import * as z from 'zod';

/** Of an app with a real login: its sessions. */
const USERS = { 'session-ada': 'ada' };

/** The options of the orchestrator. @param parts - what differs between the app and its tests */
export function deskOptions({ sql, mail, bankUrl, publicUrl, linkSecret, ...more }) {
  return {
    ensembles: [readFileSync(new URL('ensembles/refund.yaml', import.meta.url), 'utf8')],
    scripts: {
      'fraud-score': defineScript({
        input: z.object({ refunds: z.number(), mail: z.string() }),
        output: z.number(),
        run: ({ input }) => Math.min(100, input.refunds * 40 + (input.mail.endsWith('.test') ? 30 : 0)),
      }),
    },
    bindings: { sql },
    mail: { desk: mail },
    env: { BANK_URL: bankUrl },
    signalLinks: { url: `${publicUrl}/flows`, secret: linkSecret },
    ...more,
  };
}

export async function createTable(sql) {
  const { signal } = new AbortController();
  const run = (text) => sql.execute({ strings: [text], values: [] }, { signal });
  await run(`CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY, mail TEXT NOT NULL, cents INTEGER NOT NULL, refunds INTEGER NOT NULL DEFAULT 0, refund TEXT)`);
}

export function createApp(orchestrator) {
  const app = new Hono();
  const userOf = (request) => USERS[/(?:^|; )session=([\w-]+)/.exec(request.headers.get('cookie') ?? '')?.[1] ?? ''];
  // The pages below /flows are the library's: the event stream for the user's browser, and the pages of links for clerks.
  const flows = createHandler(orchestrator, {
    basePath: '/flows',
    authenticate: (request) => {
      const user = userOf(request);
      return user && { id: user, scopes: ['read:executions'] };
    },
  });
  app.use(async (context, next) => {
    const result = await flows.handle(context.req.raw, { ip: getConnInfo(context).remote.address });
    if (result.matched) return result.response;
    if (!userOf(context.req.raw)) return context.text('please log in', 401);
    await next();
  });
  // However often the button is pressed, one order has one refund.
  app.post('/refunds/:order', async (context) => {
    const order = context.req.param('order');
    const { id } = await orchestrator.start(
      'refund',
      { order },
      { idempotencyKey: `refund-${order}`, tags: [`order=${order}`] },
    );
    return context.redirect(`/refunds/${id}`, 303);
  });
  app.get('/refunds/:id', async (context) => {
    const id = context.req.param('id');
    const { status } = await orchestrator.executions.status(id);
    return context.html(PAGE.replaceAll('{id}', encodeURIComponent(id)).replace('{status}', status));
  });
  return app;
}

/** The page follows the events of the execution. The browser sends the cookie of the session with them. */
const PAGE = `<!doctype html><html lang="en"><title>Refund {id}</title><h1>Refund</h1><p id="status">{status}</p><ol id="steps"></ol>
<script>
const events = new EventSource('/flows/api/v1/executions/{id}/events');
const add = (text) => { const item = document.createElement('li'); item.textContent = text; steps.append(item); };
events.addEventListener('agent.completed', ({ data }) => add(JSON.parse(data).data.agent));
for (const end of ['completed', 'failed', 'cancelled', 'timeout'])
  events.addEventListener('execution.' + end, () => { document.getElementById('status').textContent = end; events.close(); });
</script></html>`;
