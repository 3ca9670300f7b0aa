import { toDenoHandler } from 'ensemble-orchestrator/deno';
import { handler } from './service.mjs';

export const server = Deno.serve({ port: 3000 }, toDenoHandler(handler));
