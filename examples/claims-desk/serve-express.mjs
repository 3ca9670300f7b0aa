/** The desk in an app with Express. */
import { toNodeListener } from 'ensemble-orchestrator/node';
import express from 'express';
import { flowsOf } from './desk.mjs';

/** @returns the address, and a function that stops listening */
export async function listen(orchestrator, port) {
  const app = express();
  // Before the body parser, because the signature of a webhook covers the bytes.
  app.use(toNodeListener(flowsOf(orchestrator)));
  app.use(express.json());
  app.get('/', (_request, response) => response.send('the claims desk'));
  return new Promise((resolve) => {
    const server = app.listen(port, '127.0.0.1', () =>
      resolve({ url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }),
    );
  });
}
