/** Secrets: refused where they would be stored and shown, masked in everything that people read. */

import { describe, expect, it } from 'vitest';
import type { Logger } from '../../src/engine/host/logger.port.ts';
import { boom, code, echo, ok, scene, when } from './scene.ts';

const SECRET = 'pl4nted+secret/with "odd" ümlauts & %';
const secrets = { API_KEY: SECRET, SHORT: 'short' };

const base64 = (text: string) => Buffer.from(text, 'utf8').toString('base64');
const forms: readonly (readonly [string, string])[] = [
  ['as it is', SECRET],
  ['in JSON', JSON.stringify({ key: SECRET })],
  ['percent-encoded', encodeURIComponent(SECRET)],
  ['in base64', base64(SECRET)],
  ['in base64 without padding', base64(SECRET).replace(/=+$/, '')],
  ['in base64url', Buffer.from(SECRET, 'utf8').toString('base64url')],
  ['in base64 after a user name, like Basic credentials', base64(`user:${SECRET}`)],
  ['in base64 after two more characters', base64(`ab${SECRET}`)],
  ['in base64 with text after it', base64(`${SECRET} and more`)],
  ['in a form body', new URLSearchParams({ key: SECRET }).toString()],
  ['twice', `${SECRET} ${SECRET}`],
];

/** Checks that no eight characters in a row of any usual spelling of the secret are left. */
function expectClean(text: string, of = SECRET): void {
  const spellings = [
    of,
    encodeURIComponent(of),
    base64(of),
    Buffer.from(of).toString('base64url'),
    JSON.stringify(of).slice(1, -1),
  ];
  for (const spelling of spellings) expect(text).not.toContain(spelling.replace(/=+$/, ''));
}

function logTo(lines: string[]): Logger {
  const write = (fields: object, message?: string) => lines.push(JSON.stringify([fields, message]));
  return { debug: write, info: write, warn: write, error: write };
}

describe('secrets are masked in errors', () => {
  it.each(forms)('%s', async (_form, text) => {
    const events: string[] = [];
    const lines: string[] = [];
    const { run, orchestrator } = scene(
      [code('a', 'leak', { retry: { maxAttempts: 2 } }), code('b', 'log', when('a.failed')), boom('c')],
      {
        secrets,
        logger: logTo(lines),
        scripts: {
          leak: () => {
            throw new Error(`the peer said: ${text} (end)`);
          },
          log: ({ logger }) =>
            logger.warn({ text, error: new Error(`inner ${text}`), deep: { list: [text] } }, `message ${text}`),
        },
      },
    );
    for (const kind of ['agent.failed', 'agent.retrying', 'execution.failed'] as const)
      orchestrator.on(kind, (event) => events.push(JSON.stringify(event)));
    const result = await run();
    const message = result.agents[0]?.error?.message ?? '';
    expect(message).toContain('***');
    expect(message).toMatch(/^the peer said: .*\(end\)$/);
    for (const sink of [
      JSON.stringify(result),
      events.join(),
      lines.join(),
      JSON.stringify(await orchestrator.executions.get(result.id)),
    ]) {
      expectClean(sink);
      if (/base64 after/.test(_form)) expectClean(sink, text);
    }
    expect(events.length).toBe(4);
    const own = lines.filter((line) => line.includes('"message '));
    expect(own.length).toBe(1);
    expect(JSON.parse(own[0] as string)).toMatchObject([
      { deep: { list: [expect.stringContaining('***')] } },
      expect.stringContaining('***'),
    ]);
  });

  it('a message is masked before it is cut: it has no half of a secret at its limit', async () => {
    const { run } = scene([code('a', 'leak')], {
      secrets,
      scripts: {
        leak: () => {
          throw new Error(`${'x'.repeat(4096 - 10)}${SECRET}${'y'.repeat(100)}`);
        },
      },
    });
    const message = (await run()).error?.message ?? '';
    expect(message.length).toBe(4096);
    expect(message).not.toContain(SECRET.slice(0, 4));
    expect(message).toContain('***');
  });

  it('a message of 10 MB is cut', async () => {
    const { run } = scene([code('a', 'leak')], {
      scripts: {
        leak: () => {
          throw new Error('x'.repeat(10_000_000));
        },
      },
    });
    expect((await run()).error?.message.length).toBe(4096);
  });

  it('a secret with fewer than 8 characters is not masked: it would match too much of every text', async () => {
    const { run } = scene([code('a', 'leak')], {
      secrets,
      scripts: {
        leak: () => {
          throw new Error('a short word');
        },
      },
    });
    expect((await run()).error?.message).toBe('a short word');
  });

  it('a secret that contains another secret is masked whole', async () => {
    const { run } = scene([code('a', 'leak')], {
      secrets: { A: 'abcdefgh', B: 'abcdefgh-and-more' },
      scripts: {
        leak: () => {
          throw new Error('it is abcdefgh-and-more, or abcdefgh');
        },
      },
    });
    expect((await run()).error?.message).toBe('it is ***, or ***');
  });

  it('variables of `env` are not secrets', async () => {
    const { run } = scene([code('a', 'leak')], {
      env: { NAME: 'public-name' },
      scripts: {
        leak: ({ env }) => {
          throw new Error(`name ${env.NAME}`);
        },
      },
    });
    expect((await run()).error?.message).toBe('name public-name');
  });

  it('stored step results are never changed, and steps get the secret itself', async () => {
    const { run } = scene(
      {
        flow: [code('a', 'give', { input: '${env.API_KEY}' }), code('b', 'same', { input: '${a.output}' })],
        outputs: { same: '${b.output}' },
      },
      {
        secrets,
        scripts: {
          give: ({ input, env }) => [input, env.API_KEY],
          same: ({ input }) => input[0] === SECRET && input[1] === SECRET,
        },
      },
    );
    const result = await run();
    expect(result.output).toEqual({ same: true });
    expect(result.agents[0]?.output).toEqual([SECRET, SECRET]);
  });

  it("an agent's evaluated input and config are never stored", async () => {
    const { run, orchestrator } = scene(
      [code('a', 'ok', { input: { key: '${env.API_KEY}' }, config: { key: 'Bearer ${env.API_KEY}', give: 1 } })],
      { secrets },
    );
    const { id } = await run();
    expectClean(JSON.stringify([await orchestrator.executions.get(id), orchestrator.ensembles.list()]));
  });
});

describe('a secret that an expression writes directly to stored data is refused at load', () => {
  it.each([
    ['outputs', { outputs: { key: '${env.API_KEY}' } }],
    ['outputs, inside a text', { outputs: { key: { deep: ['Bearer ${env.API_KEY}'] } } }],
    ['outputs, by a key in brackets', { outputs: { key: "${env['API_KEY']}" } }],
    ['outputs, inside a call', { outputs: { key: '${base64(env.API_KEY)}' } }],
    ['outputs, in one branch', { outputs: { key: '${input.x ? env.API_KEY : 1}' } }],
    ['state', { state: { initial: {} }, flow: [ok('a', { setState: { key: '${env.API_KEY}' } })] }],
  ])('%s', (_what, fields) => {
    expect(() => scene({ flow: [ok('a')], ...fields }, { secrets })).toThrow(
      '`env.API_KEY` is a secret and may not flow into',
    );
  });

  it('a secret in an input or a config is allowed', async () => {
    const { run } = scene([echo('a', '${length(env.API_KEY)}')], { secrets });
    expect((await run()).agents[0]?.output).toBe(SECRET.length);
  });

  it('a variable of `env` is allowed anywhere', async () => {
    const { run } = scene({ flow: [], outputs: { name: '${env.NAME}' } }, { env: { NAME: 'public' } });
    expect((await run()).output).toEqual({ name: 'public' });
  });

  it('a name that neither `env` nor `secrets` has is refused, and the process environment is never read', () => {
    process.env.ORCHESTRATOR_TEST_VARIABLE = 'from the process';
    expect(() => scene([echo('a', '${env.ORCHESTRATOR_TEST_VARIABLE}')])).toThrow(
      'variable `ORCHESTRATOR_TEST_VARIABLE` is neither in `env` nor in `secrets`',
    );
    delete process.env.ORCHESTRATOR_TEST_VARIABLE;
  });
});
