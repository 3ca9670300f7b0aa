import { getConnInfo } from '@hono/node-server/conninfo';
import { Hono } from 'hono';
import { handler } from './service.mjs';

export const app = new Hono();

app.use(async (context, next) => {
  const ip = getConnInfo(context).remote.address;
  const result = await handler.handle(context.req.raw, { ip });
  if (result.matched) return result.response;
  await next();
});
app.get('/', (context) => context.text('my own page'));
