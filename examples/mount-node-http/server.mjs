import { createServer } from 'node:http';
import { toNodeListener } from 'ensemble-orchestrator/node';
import { handler } from './service.mjs';

const listener = toNodeListener(handler);

// What is not the handler's is the app's own.
export const server = createServer((request, response) => {
  listener(request, response, () => response.end('my own page'));
});
