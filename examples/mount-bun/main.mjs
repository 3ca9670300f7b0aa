import { toBunHandler } from 'ensemble-orchestrator/bun';
import { handler } from './service.mjs';

export const server = Bun.serve({ port: 3000, fetch: toBunHandler(handler) });
