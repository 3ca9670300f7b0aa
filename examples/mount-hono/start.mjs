import { serve } from '@hono/node-server';
import { app } from './app.mjs';
import { printCall } from './print-call.mjs';
import { orchestrator } from './service.mjs';

serve({ fetch: app.fetch, port: 3000, hostname: '127.0.0.1' }, () => printCall(orchestrator, 'http://127.0.0.1:3000'));
