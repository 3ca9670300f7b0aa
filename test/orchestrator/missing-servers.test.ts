/** An execution that needs a tool server or a model provider waits for a process that has it. */

import { expect, test } from 'vitest';
import { manualClock, stubHttp } from '../../src/entries/testing.ts';
import { createOrchestrator, memoryStorage, type OrchestratorOptions } from '../../src/index.ts';
import { turns } from '../engine/scene.ts';

const URL = 'https://server.example';
const ROUTES = {
  [`GET ${URL}/tools`]: { json: { tools: [] } },
  [`POST ${URL}/tools/find`]: { json: { content: 'found' } },
  [`POST ${URL}/chat/completions`]: { json: { choices: [{ message: { content: 'found' }, finish_reason: 'stop' }] } },
};

test.each<[string, object, Partial<OrchestratorOptions>, string]>([
  [
    'a tool server of a `tools` agent',
    { operation: 'tools', config: { mcp: 'crm', tool: 'find' }, input: {} },
    { mcpServers: { crm: { url: URL } } },
    'crm',
  ],
  [
    'a model provider',
    { operation: 'think', config: { provider: 'llm', model: 'm', prompt: 'hello' } },
    { models: { llm: { url: URL } } },
    'llm',
  ],
  [
    'a tool server of a `think` agent',
    { operation: 'think', config: { provider: 'llm', model: 'm', prompt: 'hello', tools: [{ mcp: 'crm' }] } },
    { models: { llm: { url: URL } }, mcpServers: { crm: { url: URL } } },
    'crm',
  ],
])('%s', async (_, agent, options, missing) => {
  const clock = manualClock();
  const http = stubHttp(ROUTES);
  const storage = memoryStorage({ shared: true });
  const lines: string[] = [];
  const line = (_fields: unknown, text?: string) => void lines.push(String(text));
  const create = (more: Partial<OrchestratorOptions>) => createOrchestrator({ clock, storage, http, ...more });
  const ensembles = [{ name: 'e', flow: [{ sleep: '1h' }, { agent: 'a', ...agent }] }];
  const first = create({ ensembles, ...options } as Partial<OrchestratorOptions>);
  const { id } = await first.start('e');
  await turns(20);
  expect((await first.executions.get(id))?.status).toBe('waiting');

  const { [missing === 'crm' ? 'mcpServers' : 'models']: _left, ...others } = options;
  const logger = { debug: line, info: line, warn: line, error: line };
  const second = create({ ...others, logger });
  await second.ready();
  clock.setNow(clock.now() + 3_700_000);
  await second.runDue();
  await turns(50);
  expect((await second.executions.get(id))?.status).not.toMatch(/completed|failed/);
  expect(http.calls).toEqual([]);
  expect(lines.join('\n')).toContain(missing);

  await first.runDue();
  await turns(50);
  expect((await first.executions.get(id))?.status).toBe('completed');
  await Promise.all([first.close(), second.close()]);
});
