/** What an orchestrator without a logger writes: warnings and errors on the console, and nothing with `logger: false`. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { createHandler, createOrchestrator, type OrchestratorOptions } from '../../src/index.ts';

const SECRET = 'sk_live_0123456789';

const failing = (options: Pick<OrchestratorOptions, 'logger'> = {}) =>
  createOrchestrator({
    ensembles: [
      { name: 'pay', flow: [{ agent: 'charge', operation: 'code', config: { script: 'charge' } }] },
      { name: 'greet', flow: [{ agent: 'say', operation: 'code', config: { script: 'say' } }] },
    ],
    scripts: {
      charge: () => {
        throw new Error(`declined\n${SECRET} by the\u001b[31m bank`, { cause: new Error('no funds') });
      },
      say: ({ logger }) => {
        logger.info({}, 'not shown');
        logger.warn({ cents: 250n }, 'odd amount');
      },
    },
    secrets: { KEY: SECRET },
    ...options,
  });

const spy = () =>
  (['debug', 'info', 'log', 'warn', 'error'] as const).map((level) =>
    vi.spyOn(console, level).mockImplementation(() => {}),
  );
const written = (spies: ReturnType<typeof spy>) => spies.flatMap((one) => one.mock.calls);
afterEach(() => void vi.restoreAllMocks());

describe('without `logger`', () => {
  it('a failure is one line on the console, with its causes, without secrets and control characters', async () => {
    const spies = spy();
    const orchestrator = failing();
    const { id } = await orchestrator.execute('pay', {});
    await orchestrator.close();
    const lines = written(spies).map((call) => {
      expect(call).toHaveLength(1);
      return String(call[0]);
    });
    expect(lines).toHaveLength(2);
    const [attempt, execution] = lines as [string, string];
    expect(attempt).toMatch(/^ensemble-orchestrator: attempt failed \{.*"agent":"charge"/);
    expect(execution).toMatch(/^ensemble-orchestrator: execution failed \{/);
    expect(execution).toContain(`"executionId":"${id}"`);
    expect(attempt).toMatch(/declined.*: no funds/);
    for (const line of lines) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: there must be none
      expect(line).not.toMatch(/[\u0000-\u001f]/);
      expect(line).not.toContain(SECRET);
    }
  });

  it('a success writes nothing, and a script warns with the fields of its step', async () => {
    const spies = spy();
    const orchestrator = failing();
    await orchestrator.execute('greet', {});
    await orchestrator.close();
    expect(written(spies)).toEqual([
      [expect.stringMatching(/^ensemble-orchestrator: odd amount \{.*"agent":"say".*"cents":"?250/)],
    ]);
  });

  it('a handler writes what a response hides', async () => {
    const spies = spy();
    const orchestrator = failing();
    const broken = { ...orchestrator, ensembles: undefined as never };
    const answer = await createHandler(broken, { authenticate: () => ({ id: 'me', scopes: ['admin'] }) }).fetch(
      new Request('http://a.example/api/v1/ensembles'),
    );
    expect(answer.status).toBe(500);
    expect(written(spies).flat().join()).toMatch(/ensemble-orchestrator: a request failed \{"err":".*","requestId":/);
    await orchestrator.close();
  });
});

it('`logger: false` silences the orchestrator and its handler', async () => {
  const spies = spy();
  const orchestrator = failing({ logger: false });
  await orchestrator.execute('pay', {});
  const broken = { ...orchestrator, ensembles: undefined as never };
  await createHandler(broken, { authenticate: () => ({ id: 'me', scopes: ['admin'] }) }).fetch(
    new Request('http://a.example/api/v1/ensembles'),
  );
  await orchestrator.close();
  expect(written(spies)).toEqual([]);
});
