/** The desk in an app with Hono. */
import { serve } from '@hono/node-server';
import { getConnInfo } from '@hono/node-server/conninfo';
import { Hono } from 'hono';
import { flowsOf } from './desk.mjs';

/** @returns the address, and a function that stops listening */
export async function listen(orchestrator, port) {
  const flows = flowsOf(orchestrator);
  const app = new Hono();
  app.use(async (context, next) => {
    const { matched, response } = await flows.handle(context.req.raw, { ip: getConnInfo(context).remote.address });
    return matched ? response : next();
  });
  app.get('/', (context) => context.text('the claims desk'));
  return new Promise((resolve) => {
    const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, ({ port }) =>
      resolve({ url: `http://127.0.0.1:${port}`, close: () => server.close() }),
    );
  });
}
