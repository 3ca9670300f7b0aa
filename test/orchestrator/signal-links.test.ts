/** `signalUrl()` and its links: the links of one step share one answer, as long as a `wait` needs it. */

import { describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { compileHost, createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { checkEnsemble } from '../../src/orchestrator/definitions/load-definitions.ts';
import type { OrchestratorOptions } from '../../src/orchestrator/options/options.ts';

const SECRET = 'a secret that nobody can guess, 1';
const URL_BASE = 'https://flows.example/service';
const signalLinks = { url: URL_BASE, secret: SECRET };

const mail = (input: unknown, more: object = {}) => ({
  agent: 'mail',
  operation: 'code',
  config: { script: 'mail' },
  input,
  ...more,
});
const ask = (payload?: string) => `\${signalUrl('go'${payload === undefined ? '' : `, ${payload}`})}`;
const tokenOf = (link: unknown) => String(link).slice(String(link).lastIndexOf('/') + 1);

/** @param flow - `sent` collects the inputs of its mails */
function open(flow: readonly object[], outputs: object = {}, more: OrchestratorOptions = {}) {
  // biome-ignore lint/suspicious/noExplicitAny: each test knows the shape of its mails
  const sent: any[] = [];
  const orchestrator = createTestOrchestrator({
    signalLinks,
    ensembles: [{ name: 'e', flow, outputs } as never],
    ...(more as object),
    scripts: {
      mail: ({ input }) => {
        sent.push(input);
        return null;
      },
      ...more.scripts,
    },
  });
  const links = orchestrator.signalLinks as NonNullable<typeof orchestrator.signalLinks>;
  const begin = async (input: object = {}) => {
    const run = await orchestrator.start('e', input);
    await orchestrator.clock.advance(1000);
    return run;
  };
  const state = async (link: unknown) => (await links.read(tokenOf(link))).state;
  const use = async (link: unknown) => (await links.use(tokenOf(link))).state;
  return { orchestrator, links, sent, begin, state, use };
}

describe('a link sends its signal', () => {
  it('once, with its payload; reading the link sends nothing', async () => {
    const { begin, sent, use, state, links, orchestrator } = open(
      [mail({ yes: ask("{ by: 'Ada' }") }), { wait: 'go', name: 'answer' }],
      { answer: '${answer.output}' },
    );
    const run = await begin();
    const link: string = sent[0].yes;
    expect(link.startsWith(`${URL_BASE}/signals/`)).toBe(true);
    expect(link).toMatch(/\/[A-Za-z0-9_-]+\.[0-9a-f]{64}$/);
    for (let i = 0; i < 3; i++) {
      const seen = await links.read(tokenOf(link));
      expect(seen).toEqual({ state: 'open', executionId: run.id, name: 'go', payload: { by: 'Ada' } });
    }
    expect((await orchestrator.executions.get(run.id)).status).toBe('waiting');
    expect(await use(link)).toBe('given');
    expect(await use(link)).toBe('answered');
    expect((await run.result()).output).toEqual({ answer: { by: 'Ada' } });
    expect([await use(link), await state(link)]).toEqual(['answered', 'answered']);
  });

  it('also before the wait, like any signal; without a payload it is null', async () => {
    const { begin, sent, use } = open([mail(ask()), { sleep: '1h' }, { wait: 'go', name: 'answer' }], {
      answer: ['${answer.success}', '${answer.output}'],
    });
    const run = await begin();
    expect(await use(sent[0])).toBe('given');
    expect(await use(sent[0])).toBe('answered');
    expect((await run.result()).output).toEqual({ answer: [true, null] });
  });

  it('only the first link that one step created for a signal counts', async () => {
    const { begin, sent, use, orchestrator } = open(
      [mail({ yes: ask('true'), no: ask('false') }), { sleep: '1h' }, { wait: 'go', name: 'answer' }, { wait: 'go' }],
      { answer: '${answer.output}' },
    );
    const run = await begin();
    const { yes, no } = sent[0];
    expect(yes).not.toBe(no);
    // At the same moment: one of them is `answered`.
    const both = await Promise.all([use(no), use(yes)]);
    expect([...both].sort()).toEqual(['answered', 'given']);
    await orchestrator.clock.advance(3_600_000);
    expect([await use(yes), await use(no)]).toEqual(['answered', 'answered']);
    // No signal is left for the next wait.
    expect((await orchestrator.executions.get(run.id)).status).toBe('waiting');
  });

  it('each round of a while has new links', async () => {
    const { begin, sent, use, orchestrator } = open(
      [
        {
          while: '!answer.executed || !answer.output',
          steps: [mail({ yes: ask('true'), no: ask('false') }), { wait: 'go', name: 'answer' }],
        },
      ],
      { answer: '${answer.output}' },
    );
    const run = await begin();
    expect(await use(sent[0].no)).toBe('given');
    await orchestrator.clock.advance(1000);
    expect(sent).toHaveLength(2);
    expect([await use(sent[0].yes), await use(sent[1].yes)]).toEqual(['answered', 'given']);
    expect((await run.result()).output).toEqual({ answer: true });
  });

  it.each([
    [
      'foreach',
      { foreach: '${input.who}', concurrency: 2, steps: [mail(ask('item')), { wait: 'go', name: 'answer' }] },
    ],
    [
      'parallel',
      {
        parallel: ["'Ada'", "'Bob'"].map((who) => ({
          if: true,
          then: [mail(ask(who), { name: `m${who.length}${who[1]}` }), { wait: 'go' }],
        })),
      },
    ],
  ])('an answer in one part of a %s does not end the links of the other parts', async (_form, step) => {
    const { begin, sent, use, orchestrator } = open([step]);
    const run = await begin({ who: ['Ada', 'Bob'] });
    expect(sent).toHaveLength(2);
    expect(await use(sent[0])).toBe('given');
    await orchestrator.clock.advance(1000);
    expect(await use(sent[1])).toBe('given');
    expect((await run.result()).status).toBe('completed');
  });
});

describe('a link that is over', () => {
  it('after its wait timed out, even if the flow continues to another wait', async () => {
    const { begin, sent, use, state, orchestrator } = open([
      mail(ask()),
      { wait: 'go', timeout: '1h', onTimeout: 'continue' },
      mail(ask(), { name: 'reminder' }),
      { wait: 'go', name: 'answer' },
    ]);
    const run = await begin();
    await orchestrator.clock.advance(3_600_000);
    expect([await state(sent[0]), await use(sent[0])]).toEqual(['over', 'over']);
    expect((await orchestrator.executions.get(run.id)).status).toBe('waiting');
    expect(await use(sent[1])).toBe('given');
    expect((await run.result()).status).toBe('completed');
  });

  it('after its wait took another signal; a wait for a signal of another name has no effect', async () => {
    const { begin, sent, state, orchestrator } = open([
      mail(ask()),
      { wait: 'other' },
      { wait: 'other', timeout: '1h', onTimeout: 'continue' },
      { wait: 'go' },
      { wait: 'later' },
    ]);
    const run = await begin();
    await orchestrator.executions.signal(run.id, 'other');
    await orchestrator.clock.advance(3_600_000);
    expect(await state(sent[0])).toBe('open');
    await orchestrator.executions.signal(run.id, 'go');
    await orchestrator.clock.advance(1000);
    expect(await state(sent[0])).toBe('over');
  });

  it('after the answer of one of several people ended the wait that they share', async () => {
    const { begin, sent, use, orchestrator } = open([
      { foreach: '${input.who}', steps: [mail(ask('item'))] },
      { wait: 'go' },
      { wait: 'later' },
    ]);
    await begin({ who: ['Ada', 'Bob'] });
    expect(await use(sent[1])).toBe('given');
    await orchestrator.clock.advance(1000);
    expect([await use(sent[0]), await use(sent[1])]).toEqual(['over', 'answered']);
  });

  it('after the execution ended, or was deleted', async () => {
    const { begin, sent, state, use, orchestrator } = open([mail(ask()), { wait: 'go' }]);
    const run = await begin();
    await orchestrator.executions.cancel(run.id);
    await run.result();
    expect([await state(sent[0]), await use(sent[0])]).toEqual(['over', 'over']);
    const elsewhere = open([]);
    expect([await elsewhere.state(sent[0]), await elsewhere.use(sent[0])]).toEqual(['over', 'over']);
  });
});

describe('a link that was not created here', () => {
  it('is unknown, whatever was changed, and its state contains nothing else', async () => {
    const { begin, sent, links } = open([mail(ask('{ by: input.who }')), { wait: 'go' }]);
    await begin({ who: 'Ada' });
    const token = tokenOf(sent[0]);
    const [body = '', proof = ''] = token.split('.');
    const other = Buffer.from(Buffer.from(body, 'base64url').toString().replace('Ada', 'Eve')).toString('base64url');
    const last = proof.endsWith('0') ? '1' : '0';
    const changed = [
      `${other}.${proof}`,
      `${body}.${proof.slice(0, -1)}${last}`,
      `${body}.${proof.toUpperCase()}`,
      `${body}.${proof.slice(1)}`,
      `${body}=.${proof}`,
      `${body}.${proof}0`,
      ...[body, proof, `.${proof}`, `${body}.`, '', '.', 'a.b', `${'A'.repeat(100_000)}.${proof}`],
    ];
    for (const one of changed) {
      expect(await links.read(one), one).toEqual({ state: 'unknown' });
      expect(await links.use(one), one).toEqual({ state: 'unknown' });
    }
    expect((await links.read(token)).state).toBe('open');
  });

  it('a link signed with an older secret is valid while the secret is listed, and the first secret signs', async () => {
    const [before, now] = [`before ${SECRET}`, `now ${SECRET}`];
    const storage = memoryStorage({ shared: true });
    const flow = [mail(ask()), { wait: 'go' }];
    const withSecret = (secret: string | readonly string[]) =>
      open(flow, {}, { storage, signalLinks: { url: URL_BASE, secret } });
    const old = withSecret(before);
    await old.begin();
    const both = withSecret([now, before]);
    expect(await both.state(old.sent[0])).toBe('open');
    await both.begin();
    expect(await withSecret([now]).state(both.sent.at(-1))).toBe('open');
    expect(await withSecret([now]).state(old.sent[0])).toBe('unknown');
  });
});

describe('signalUrl()', () => {
  it('returns the same link on each attempt, in each part of the step, and in a process that resumes the execution', async () => {
    const storage = memoryStorage({ shared: true });
    const clock = manualClock();
    const seen: unknown[] = [];
    const start = (mail: () => unknown) =>
      createOrchestrator({
        signalLinks: { ...signalLinks, url: `${URL_BASE}/` },
        storage,
        clock,
        ensembles: [
          {
            name: 'e',
            flow: [
              { sleep: 5 },
              {
                agent: 'mail',
                operation: 'code',
                config: { script: 'mail', link: ask('1') },
                input: ask('1'),
                retry: { maxAttempts: 2 },
              },
              { if: false, then: [{ wait: 'go' }] },
            ],
          } as never,
        ],
        scripts: {
          mail: ({ input, config }) => {
            seen.push(input, config.link);
            return mail();
          },
        },
      });
    const settle = async (ms: number) => {
      for (let i = 0; i < 5; i++) await hostTurn();
      await clock.advance(ms);
      for (let i = 0; i < 5; i++) await hostTurn();
    };
    let calls = 0;
    const first = start(() => {
      calls += 1;
      if (calls === 1) throw new Error('not yet');
      return new Promise(() => {});
    });
    const { id } = await first.start('e');
    await settle(100);
    await settle(60_000);
    const closed = first.close({ grace: 0 });
    await settle(60_000);
    await closed;
    const second = start(() => 'sent');
    await second.ready();
    await settle(60_000);
    expect((await second.executions.get(id)).status).toBe('completed');
    expect(seen).toHaveLength(6);
    expect(new Set(seen).size).toBe(1);
    expect(String(seen[0])).not.toContain('service//');
  });

  it.each([
    ["signalUrl('not ' + 'a name')", "a signal's name"],
    ["signalUrl(parseJson('5'))", 'must be text, found a number'],
    ["signalUrl('go', input.long)", 'at most 2000 are allowed; put less into the payload'],
  ])('%s fails the step', async (source, says) => {
    const { orchestrator } = open([mail(`\${${source}}`), { wait: 'go' }]);
    const { error } = await orchestrator.execute('e', { long: 'x'.repeat(2000) });
    expect(error?.code).toBe('EXPRESSION_ERROR');
    expect(error?.message).toContain(says);
  });

  it('is refused for a signal that no `wait` of the flow waits for, with the nearest one that does', () => {
    const host = compileHost({ signalLinks, scripts: { mail: () => null } });
    const problems = (flow: readonly unknown[], more: object = {}) =>
      checkEnsemble({ name: 'e', flow, ...more } as never, host).issues;
    const wrong = { path: 'flow[0].input', message: 'no `wait` of this flow waits for the signal `go`' };
    expect(problems([mail(ask()), { wait: 'goo' }])).toEqual([{ ...wrong, suggestion: 'goo' }]);
    expect(problems([mail(ask())])).toEqual([wrong]);
    expect(problems([mail('${signalUrl(input.name)}')])).toEqual([]);
    // The `wait` may be anywhere, also before the link.
    const nested = [{ foreach: [1], steps: [{ try: [{ wait: 'go' }], finally: [] }] }];
    expect(problems([mail(ask()), { switch: 'input.a', cases: { b: nested } }])).toEqual([]);
    expect(problems([{ while: 'input.a', steps: [{ wait: 'go' }] }, mail(ask())])).toEqual([]);
    // A `wait` that could not be read may be the right one.
    expect(problems([mail(ask()), { wait: 5 }]).map(({ path }) => path)).toEqual(['flow[1].wait']);
    // `ensemble validate` finds it without the host's options.
    const source =
      'name: e\nflow:\n  - { agent: a, operation: code, config: { script: mail }, input: "${signalUrl(\'go\')}" }\n  - wait: Go\n';
    const { issues } = checkEnsemble(source, { ...compileHost({ scripts: { mail: () => null } }), lenient: true });
    expect(issues).toMatchObject([{ line: 3, column: 80, suggestion: 'Go', frame: expect.stringContaining('^^^^') }]);
    // A shared agent may be used in any flow.
    const shared = { name: 'mail', operation: 'code', config: { script: 'mail' }, input: ask() };
    const given = { signalLinks, scripts: { mail: () => null }, agents: [shared] };
    expect(() => createOrchestrator(given)).not.toThrow();
    expect(() => createOrchestrator({ ...given, ensembles: [{ name: 'e', flow: [{ agent: 'mail' }] }] })).toThrow(
      'flow[0].agent: shared agent `mail` at `input`: no `wait` of this flow waits for the signal `go`',
    );
  });

  it('without the option, the definition is refused, with the option to set', () => {
    const refused = (flow: readonly object[]) => () =>
      createOrchestrator({ ensembles: [{ name: 'e', flow } as never], scripts: { mail: () => null } });
    const message = 'pass `signalLinks: { url, secret }` to createOrchestrator';
    const wait = { wait: 'go' };
    expect(refused([mail(ask()), wait])).toThrow(expect.objectContaining({ code: 'NOT_CONFIGURED' }));
    expect(refused([mail(ask()), wait])).toThrow(message);
    expect(refused([{ if: "signalUrl('go') == ''", then: [mail(null)] }, wait])).toThrow(message);
    expect(createOrchestrator().signalLinks).toBeUndefined();
  });

  it('a definition that is checked without its host is valid', () => {
    const source = { name: 'e', flow: [mail(ask()), { wait: 'go' }] } as never;
    const host = compileHost({ scripts: { mail: () => null } });
    expect(checkEnsemble(source, host).issues).toMatchObject([{ path: 'flow[0].input' }]);
    expect(checkEnsemble(source, { ...host, lenient: true }).issues).toEqual([]);
  });

  it('a process without the option leaves stored executions that need it to others', async () => {
    const storage = memoryStorage({ shared: true });
    const flow = [{ sleep: '1h' }, mail(ask()), { wait: 'go' }];
    const first = open(flow, {}, { storage });
    const { id } = await first.begin();
    await first.orchestrator.close();
    const serve = async (given: OrchestratorOptions, ensembles: readonly object[]) => {
      const clock = manualClock();
      const other = createTestOrchestrator({
        ...given,
        clock,
        storage,
        scripts: { mail: () => null },
        ensembles,
      } as never);
      await other.ready();
      await clock.advance(7_200_000);
      const { agents } = await other.executions.get(id);
      await other.close();
      return agents?.map(({ status }) => status);
    };
    expect(await serve({}, [])).toEqual([]);
    expect(await serve({ signalLinks }, [])).toEqual(['completed']);
  });

  it('is refused where the link would be stored and shown', () => {
    const flow = [mail(ask()), { wait: 'go' }];
    const refused = (more: object) => () =>
      createOrchestrator({
        signalLinks,
        scripts: { mail: () => null },
        ensembles: [{ name: 'e', flow, ...more } as never],
      });
    expect(refused({ outputs: { link: ask() } })).toThrow(
      '`signalUrl()` is a secret and may not flow into the outputs',
    );
    const setState = {
      state: { initial: { link: '' } },
      flow: [mail(null, { setState: { link: `see ${ask()}` } }), { wait: 'go' }],
    };
    expect(refused(setState)).toThrow('`signalUrl()` is a secret and may not flow into the state');
    expect(refused({ flow: [{ ensemble: 'e', input: { link: ask() } }, { wait: 'go' }] })).toThrow(
      'the input of another ensemble',
    );
  });

  it('a secret is refused in the payload, which the page shows, wherever the link is created', () => {
    const refused = (flow: readonly object[]) => () =>
      createOrchestrator({
        signalLinks,
        secrets: { KEY: 'a secret of 20 letters' },
        env: { STAGE: 'test' },
        scripts: { mail: () => null },
        ensembles: [{ name: 'e', flow: [...flow, { wait: 'go' }] } as never],
      });
    const message = 'is a secret and may not flow into signalUrl(), whose page shows it';
    expect(refused([mail(ask('{ to: [env.KEY] }'))])).toThrow(`\`env.KEY\` ${message}`);
    expect(refused([mail({}, { config: { script: 'mail', link: ask('env.KEY') } })])).toThrow(message);
    expect(refused([mail({}, { condition: "signalUrl('go', env.KEY) != ''" })])).toThrow(message);
    const inItem = { foreach: '${[env.KEY]}', steps: [mail(ask('item'))] };
    expect(refused([inItem])).toThrow(`\`item\` may hold \`env.KEY\`, which ${message}`);
    expect(
      refused([mail(ask('env.STAGE')), { foreach: '${[env.KEY]}', steps: [mail([ask('index'), '${item}'])] }]),
    ).not.toThrow();
  });

  it('no link and no secret appears in a log or an error', async () => {
    const logged: unknown[] = [];
    const log = (fields: object, message?: string) => void logged.push(fields, message);
    const { orchestrator } = open(
      [mail(ask()), { wait: 'go' }],
      {},
      {
        logger: { debug: log, info: log, warn: log, error: log },
        scripts: {
          mail: ({ input, logger }) => {
            logger.info({ input }, `sent ${input} and ${encodeURIComponent(String(input))}`);
            throw new Error(`can't send ${input}, signed with ${SECRET}`);
          },
        },
      },
    );
    const { error } = await orchestrator.execute('e');
    const text = JSON.stringify([logged, error]);
    expect(text).toContain(`can't send ${URL_BASE}/signals/***, signed with ***`);
    expect(text).not.toMatch(/[0-9a-f]{16}/);
  });

  it("a host's own function can't have its name", () => {
    const functions = { signalUrl: { minArgs: 0, maxArgs: 0, call: () => 'mine' } };
    expect(() => createOrchestrator({ functions })).toThrow('functions.signalUrl is built in');
  });
});

describe('the option', () => {
  const urls = [
    'flows.example',
    'ftp://flows.example',
    'https://',
    'https://a.example/?x=1',
    'https://me:pw@a.example/',
    ' https://a.example',
    5,
  ];
  const secrets = [undefined, '', 'x'.repeat(31), [], [SECRET, 'short'], 5];
  const cases: readonly (readonly [given: unknown, says: string])[] = [
    ['text', 'must be { url, secret }'],
    [null, 'must be { url, secret }'],
    [{ url: URL_BASE, secret: SECRET, sekret: 1 }, '`sekret` is not an option of this version; did you mean `secret`?'],
    ...urls.map((url) => [{ url, secret: SECRET }, '`url` must be the public address'] as const),
    ...secrets.map((secret) => [{ url: URL_BASE, secret }, '`secret` must be text of at least 32'] as const),
  ];

  it.each(cases)('%j is refused, with a message that does not contain the secret', (given, says) => {
    const create = () => createOrchestrator({ signalLinks: given as never });
    expect(create).toThrow(TypeError);
    expect(create).toThrow(says);
    expect(create).not.toThrow(SECRET);
  });
});
