import { app } from './app.mjs';
import { printCall } from './print-call.mjs';
import { orchestrator } from './service.mjs';

await printCall(orchestrator, await app.listen({ port: 3000, host: '127.0.0.1' }));
