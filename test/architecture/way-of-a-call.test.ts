/** How many functions of the library a call passes: what a reader holds in mind. Only a decision in `docs/decisions/` raises a number. */

import { type Profiler, Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createApiHandler, createOrchestrator } from '../../src/index.ts';

/** Functions that the second `execute` of an ensemble with one step calls. */
const MAX_OF_EXECUTE = 175;
/** Functions that one request which executes it calls, from the handler on. */
const MAX_OF_POST = 312;

const SRC = new URL('../../src/', import.meta.url).pathname;
const session = new Session();
const orchestrator = createOrchestrator({
  ensembles: [
    'name: one\nflow:\n  - { agent: first, operation: code, config: { script: echo }, input: { n: "${input.n}" } }\noutputs: { n: "${first.output.n}" }\n',
  ],
  scripts: { echo: ({ input }) => input },
  logger: false,
});
const handler = createApiHandler(orchestrator);

beforeAll(async () => {
  session.connect();
  await session.post('Profiler.enable');
});
afterAll(async () => {
  session.disconnect();
  await orchestrator.close();
});

it(`the second execution passes at most ${MAX_OF_EXECUTE} functions`, async () => {
  await orchestrator.execute('one', { n: 1 });
  const called = await functionsOf(() => orchestrator.execute('one', { n: 2 }));
  expect(called.length).toBeGreaterThan(50);
  expect(called.length, called.join('\n')).toBeLessThanOrEqual(MAX_OF_EXECUTE);
});

it(`a request that executes an ensemble passes at most ${MAX_OF_POST} functions`, async () => {
  const { token } = await orchestrator.tokens.create({ name: 'caller', scopes: ['execute:ensembles'] });
  const send = async () => {
    const request = new Request('http://app.test/api/v1/execute/ensemble/one', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"input":{"n":1}}',
    });
    const { status } = await handler.fetch(request);
    expect(status).toBe(200);
  };
  for (let i = 0; i < 2; i++) await send();
  const called = await functionsOf(send);
  expect(called.length).toBeGreaterThan(100);
  expect(called.length, called.join('\n')).toBeLessThanOrEqual(MAX_OF_POST);
});

/** The named functions of the library that were called meanwhile. Others are made by the tool that loads the tests. */
async function functionsOf(work: () => Promise<unknown>): Promise<string[]> {
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await work();
  const { result } = (await session.post('Profiler.takePreciseCoverage')) as Profiler.TakePreciseCoverageReturnType;
  await session.post('Profiler.stopPreciseCoverage');
  return result.flatMap(({ url, functions }) => {
    const path = url.startsWith('file:') ? fileURLToPath(url) : url;
    if (!path.startsWith(SRC)) return [];
    return functions
      .filter(
        ({ functionName, ranges }) =>
          /^[#\w$]+$/.test(functionName) && functionName !== 'get' && (ranges[0]?.count ?? 0) > 0,
      )
      .map(({ functionName }) => `${path.slice(SRC.length)} ${functionName}`);
  });
}
