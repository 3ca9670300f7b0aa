import { toNodeListener } from 'ensemble-orchestrator/node';
import Fastify from 'fastify';
import { handler } from './service.mjs';

export const app = Fastify();
const listener = toNodeListener(handler);

// `onRequest` runs before Fastify reads a body. Requests for other paths continue to the routes.
app.addHook('onRequest', (request, reply, done) => listener(request.raw, reply.raw, done));
app.get('/', () => 'my own page');
