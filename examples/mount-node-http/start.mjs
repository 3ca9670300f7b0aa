import { printCall } from './print-call.mjs';
import { server } from './server.mjs';
import { orchestrator } from './service.mjs';

server.listen(3000, '127.0.0.1', () => printCall(orchestrator, 'http://127.0.0.1:3000'));
