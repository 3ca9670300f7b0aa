/** A config that an expression makes wrong is refused before the attempt, with what its operation expects. */

import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import * as mini from 'zod/mini';
import { createOrchestrator, defineOperation } from '../../src/index.ts';

async function refusal(operation: string, config: object, input: object): Promise<unknown> {
  const schemas = { classic: z.object({ n: z.number() }), mini: mini.object({ n: mini.number('give a number') }) };
  const orchestrator = createOrchestrator({
    ensembles: [{ name: 'e', flow: [{ agent: 'a', operation, config }] } as never],
    operations: Object.entries(schemas).map(([name, schema]) =>
      defineOperation({ name, config: schema, run: () => null }),
    ),
  });
  return (await orchestrator.execute('e', input as never)).error?.message;
}

describe('the message names the place and what is expected, and shows no value', () => {
  const url = 'https://example.com';
  it.each<[string, object, object, string]>([
    ['api', { url: '${input.x}' }, { x: 5 }, 'config.url: must be a string'],
    ['api', { url, method: '${input.x}' }, { x: 5 }, 'config.method: must be a string'],
    ['api', { url, query: '${input.x}' }, { x: 'planted' }, 'config.query: must be a map of keys'],
    [
      'api',
      { url, timeout: '${input.x}' },
      { x: 'planted' },
      'config.timeout: must be a duration such as `30s` or `5m`, or a whole number of milliseconds, above 0 and at most ten years',
    ],
    [
      'api',
      { url, timeout: '${input.x}' },
      { x: 1.5 },
      'config.timeout: must be a duration such as `30s` or `5m`, or a whole number of milliseconds, above 0 and at most ten years',
    ],
    ['api', { url, auth: { type: 'bearer', token: '${input.x}' } }, { x: 5 }, 'config.auth.token: must be a string'],
    [
      'api',
      { url, auth: '${input.x}' },
      { x: { type: 'bearer', token: 'planted', user: 1 } },
      'config.auth: has keys that do not belong there: user',
    ],
    ['storage', { type: 'kv', action: 'get', key: '${input.x}' }, { x: 5 }, 'config.key: must be a string'],
    [
      'storage',
      { type: 'kv', action: 'get', key: '${input.x}' },
      { x: '' },
      'config.key: must have at least 1 character',
    ],
    [
      'storage',
      { type: 'kv', action: 'put', key: 'k', value: 1, ttl: '${input.x}' },
      { x: 0 },
      'config.ttl: must be at least 1',
    ],
    [
      'storage',
      { type: 'kv', action: 'list', limit: '${input.x}' },
      { x: 'planted' },
      'config.limit: must be a number',
    ],
    ['classic', { n: '${input.x}' }, { x: 'planted' }, 'config.n: Invalid input: expected number, received string'],
    ['mini', { n: '${input.x}' }, { x: 'planted' }, 'config.n: give a number'],
  ])('%s %j', async (operation, config, input, message) => {
    expect(await refusal(operation, config, input)).toBe(`the config of agent \`a\` can't be used: ${message}`);
  });
});
