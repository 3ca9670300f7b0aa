import { app } from './app.mjs';
import { printCall } from './print-call.mjs';
import { orchestrator } from './service.mjs';

app.listen(3000, '127.0.0.1', () => printCall(orchestrator, 'http://127.0.0.1:3000'));
