/** A bare Hono route that reads the same body and answers with JSON: the cost of a request over a socket alone. */

import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { post } from './http-service.mjs';
import { socketCase } from './socket-client.mjs';

export async function setup() {
  const app = new Hono();
  app.post('/run', async (context) => {
    const { input } = await context.req.json();
    return context.json({ status: 'completed', output: { x: input.x + 1 } });
  });
  return socketCase(createAdaptorServer({ fetch: app.fetch }), '/run', post('none'), '"completed"');
}
