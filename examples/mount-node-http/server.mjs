import { createServer } from 'node:http';
import { toNodeListener } from 'ensemble-orchestrator/node';
import { handler } from './service.mjs';

const listener = toNodeListener(handler);

// Requests for other paths go to the app.
export const server = createServer((request, response) => {
  listener(request, response, () => response.end('my own page'));
});
