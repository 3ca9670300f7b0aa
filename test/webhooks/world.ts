/** An orchestrator with webhooks on a manual clock, and short ways to call them. */

import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createHandler } from '../../src/http-handlers/create-handler.ts';
import type { HandlerOptions } from '../../src/http-handlers/handler-options.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';

/** An ensemble that returns what it was given. */
export const echo = (trigger: object, more: object = {}) => ({
  name: 'echo',
  trigger: [{ type: 'webhook', path: '/webhooks/echo', ...trigger }],
  flow: [{ agent: 'say', operation: 'code', config: { script: 'echo' }, input: '${input}' }],
  outputs: { said: '${say.output}' },
  ...more,
});

export function openWebhooks(
  ensembles: readonly object[],
  more: Partial<OrchestratorOptions> = {},
  options: HandlerOptions = {},
) {
  const clock = manualClock();
  const log: { readonly level: string; readonly message?: string | undefined }[] = [];
  const logAt = (level: string) => (_fields: object, message?: string) => void log.push({ level, message });
  const orchestrator = createOrchestrator({
    ensembles: ensembles as never,
    clock,
    storage: memoryStorage(),
    logger: { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') },
    ...more,
    scripts: {
      echo: ({ input }) => input,
      boom: () => {
        throw new Error('the card 4242 was refused');
      },
      ...more.scripts,
    },
  });
  const handler = createHandler(orchestrator, { clock, ...options });
  const call = async (path: string, init: RequestInit = {}) => {
    const response = await handler.fetch(new Request(`http://localhost${path}`, init), { ip: '192.0.2.1' });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text !== '' ? JSON.parse(text) : text,
    };
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    call(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const runs = async () => (await orchestrator.executions.list()).executions;
  return { orchestrator, handler, clock, log, call, post, runs };
}
