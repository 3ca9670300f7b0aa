/** The `email` operation: a single mail, what a definition may say, and what happens when a send fails. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator, stubHttp } from '../../src/entries/testing.ts';
import {
  createOrchestrator,
  type KeptMail,
  type MailSender,
  type MemoryMailOptions,
  memoryMail,
  OrchestratorError,
} from '../../src/index.ts';

const PLAIN = { from: 'shop@example.com', to: 'ada@example.com', subject: 'Hello', body: 'Hello Ada' };

const ensembleOf = (config: object, fields: object = {}) => ({
  name: 'e',
  flow: [{ agent: 'send', operation: 'email', config: { ...PLAIN, ...config }, ...fields }],
  outputs: { send: '${send.output}' },
});

function world(config: object, fields: object = {}, options: MemoryMailOptions = {}) {
  const mail = memoryMail(options);
  return {
    mail,
    orchestrator: createTestOrchestrator({ mail: { smtp: mail }, ensembles: [ensembleOf(config, fields)] }),
  };
}

/** Runs the ensemble, and returns the one mail that was sent. */
async function sent(config: object, input: unknown = {}): Promise<KeptMail> {
  const { mail, orchestrator } = world(config);
  const { status, error } = await orchestrator.execute('e', input);
  expect(error ?? status).toBe('completed');
  expect(mail.messages).toHaveLength(1);
  return mail.messages[0] as KeptMail;
}

/** The message of the failure of a mail that can't be sent. */
async function refused(config: object, input: unknown = {}): Promise<string | undefined> {
  const { mail, orchestrator } = world(config);
  const { error } = await orchestrator.execute('e', input);
  expect([error?.code, mail.messages.length]).toEqual(['INVALID_INPUT', 0]);
  return error?.message;
}

/** The messages about a definition that is refused, each after its path. */
function problems(config: object, mail: Record<string, MailSender> = { smtp: memoryMail() }): readonly string[] {
  try {
    createOrchestrator({ mail, ensembles: [ensembleOf(config)] });
  } catch (error) {
    const { details, code } = error as OrchestratorError;
    const issues = details.issues as { path: string; message: string }[];
    return issues.map(({ path, message }) => `${code} ${path}: ${message}`);
  }
  return [];
}

describe('a mail', () => {
  it('has the fields of the config, and gives its id', async () => {
    const { mail, orchestrator } = world({
      ...{ from: 'Shop <shop@example.com>', to: ['Ada <ada@example.com>', 'b@example.com'], cc: 'c@example.com' },
      ...{ bcc: ['d@example.com'], replyTo: 'help@example.com', html: '<p>Hi</p>', tags: ['order'] },
      ...{ headers: { 'X-Order': 7, 'X-None': null }, metadata: { order: { id: 7 } } },
    });
    const { output } = await orchestrator.execute('e');
    const { messageId, idempotencyKey, ...message } = mail.messages[0] as KeptMail;
    expect(output).toEqual({ send: { messageId, success: true, provider: 'smtp' } });
    expect(idempotencyKey).toMatch(/^[0-9a-f]{32}$/);
    expect(message).toEqual({
      from: { address: 'shop@example.com', name: 'Shop' },
      to: [{ address: 'ada@example.com', name: 'Ada' }, { address: 'b@example.com' }],
      cc: [{ address: 'c@example.com' }],
      bcc: [{ address: 'd@example.com' }],
      replyTo: { address: 'help@example.com' },
      ...{ subject: 'Hello', text: 'Hello Ada', html: '<p>Hi</p>', attachments: [], tags: ['order'] },
      ...{ headers: { 'X-Order': '7' }, metadata: { order: { id: 7 } }, settings: {} },
    });
  });

  it('has the name of `fromName`', async () => {
    expect((await sent({ fromName: 'The Shop' })).from).toEqual({ address: 'shop@example.com', name: 'The Shop' });
  });

  it('has expressions in its subject, and fields of the input in its bodies, escaped in HTML', async () => {
    const { subject, text, html } = await sent(
      { subject: 'Order ${input.id}', body: 'Dear {{ name }}', html: '<p>{{ name }}</p>' },
      { id: 7, name: '<b>Ada & Co</b>' },
    );
    expect([subject, text, html]).toEqual([
      'Order 7',
      'Dear <b>Ada & Co</b>',
      '<p>&lt;b&gt;Ada &amp; Co&lt;/b&gt;</p>',
    ]);
  });

  it('has the same Message-ID and key on every attempt, at the domain of the sender', async () => {
    const seen: string[] = [];
    const { orchestrator } = world(
      {},
      { retry: { maxAttempts: 2 } },
      {
        onSend({ messageId }, { idempotencyKey }) {
          seen.push(`${messageId} ${idempotencyKey}`);
          if (seen.length === 1) throw new OrchestratorError('AGENT_FAILED', 'busy', { retryable: true });
        },
      },
    );
    expect((await orchestrator.execute('e')).status).toBe('completed');
    expect(seen[0]).toBe(seen[1]);
    expect(seen[0]).toMatch(/^<[0-9a-f]{32}@example\.com> /);
    await orchestrator.execute('e');
    expect(seen[2]).not.toBe(seen[0]);
  });

  it('has the settings of the config that its sender takes, and no others', async () => {
    const settings = { host: 'mail.example', port: 465, secure: true, auth: { user: 'u', pass: 'pass-1234' } };
    expect((await sent(settings)).settings).toEqual(settings);
  });
});

describe('a name in {{ }} that nothing has', () => {
  it('is refused when a single mail is loaded, with the nearest name, in each text', () => {
    const input = { name: 'Ada' };
    const of = (config: object, fields: object = { input }) => {
      try {
        createOrchestrator({ mail: { smtp: memoryMail() }, ensembles: [ensembleOf(config, fields)] });
        return [];
      } catch (error) {
        return ((error as OrchestratorError).details.issues as { path: string; message: string }[]).map(
          ({ path, message }) => `${path}: ${message}`,
        );
      }
    };
    for (const key of ['subject', 'body', 'html'])
      expect(of({ [key]: 'Hello {{ nme }}, bye' })).toMatchObject([expect.stringContaining('`nme`')]);
    expect(of({ body: 'Hello {{ nme || "you" }}' })).toHaveLength(1);
    expect(of({ body: 'Hello {{ name }}' })).toEqual([]);
    // Without an input of its own, the agent has that of the execution, whose fields are not declared here.
    expect(of({ body: 'Hello {{ name }}' }, {})).toEqual([]);
    expect(of({ body: 'Hello {{ name }}' }, { input: '${input.customer}' })).toEqual([]);
  });
});

describe('an attachment', () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const attached = async (attachment: object, input?: unknown) =>
    (await sent({ attachments: [attachment] }, input)).attachments;

  it('is text, or base64', async () => {
    const attachments = [
      { filename: 'a.txt', content: 'żółć' },
      { filename: 'b.csv', content: 'a,b', contentType: 'text/csv', encoding: 'utf8' },
      { filename: 'c.bin', content: 'AP+A', encoding: 'base64' },
    ];
    expect((await sent({ attachments })).attachments).toEqual([
      { filename: 'a.txt', content: bytes('żółć'), contentType: 'text/plain; charset=utf-8' },
      { filename: 'b.csv', content: bytes('a,b'), contentType: 'text/csv' },
      { filename: 'c.bin', content: Uint8Array.of(0, 255, 128), contentType: 'application/octet-stream' },
    ]);
  });

  it.each([
    ['a PDF', '%PDF-1.7 some content'],
    ['a PNG image', '\x89PNG\r\n\x1a\n and the rest'],
    ['a JPEG image', '\xff\xd8\xff\xe0 and the rest'],
    ['a ZIP file', 'PK\x03\x04 and the rest of it'],
  ])('in base64 of %s without `encoding` is refused with the remedy; other text stays text', async (kind, content) => {
    const base64 = Buffer.from(content, 'latin1').toString('base64');
    expect(await refused({ attachments: [{ filename: 'a.bin', content: base64 }] })).toContain(
      `\`attachments[0].content\` of the mail: is base64 of ${kind}`,
    );
    expect(await refused({ attachments: [{ filename: 'a', content: base64 }] })).toContain('add `encoding: base64`');
    const [file] = await attached({ filename: 'a.txt', content: base64, encoding: 'utf8' });
    expect(file?.content).toEqual(bytes(base64));
    expect(await attached({ filename: 'a.txt', content: `${base64.slice(0, 8)} is no file` })).toHaveLength(1);
  });

  it('is the output of `pdf`, or the binary body of `api`', async () => {
    const pdf = { content: 'JVBERg==', contentType: 'application/pdf', encoding: 'base64', pages: 1, size: 4 };
    expect(await attached({ filename: 'bills/7.pdf', content: '${input.pdf}' }, { pdf })).toEqual([
      { filename: '7.pdf', content: bytes('%PDF'), contentType: 'application/pdf' },
    ]);
  });

  it.each([
    [
      { filename: 'a', content: 'no base64!', encoding: 'base64' },
      'attachments[0].content` of the mail: is not base64',
    ],
    [
      { filename: 'a', content: 'YQ', encoding: 'base64', contentType: 'text/html\r\nX-Evil: 1' },
      'must be a media type',
    ],
    [{ filename: 'a\r\nX: y', content: 'x' }, 'attachments[0].filename` of the mail: has a line break'],
    [{ filename: 'a', content: '${input.file}' }, 'expected text, or a file'],
  ])('%j is refused', async (attachment, message) => {
    const file = { content: 'x', path: '/etc/passwd' };
    expect(await refused({ attachments: [attachment] }, { file })).toContain(message);
  });

  it.each(['path', 'href', 'raw', 'cid'])('never has the key `%s`', (key) => {
    expect(problems({ attachments: [{ filename: 'a', content: 'x', [key]: '/etc/passwd' }] }).join()).toContain(key);
  });
});

describe('a value that an expression gives is refused', () => {
  it.each<[string, object, object, string]>([
    [
      'a line break in the subject',
      { subject: '${input.x}' },
      { x: 'a\r\nBcc: evil@e.com' },
      'subject` of the mail: has a line break',
    ],
    ['a line break in a name', { fromName: '${input.x}' }, { x: 'a\nb' }, 'fromName` of the mail: has a line break'],
    ['two addresses in one', { to: '${input.x}' }, { x: 'a@x.com,b@x.com' }, 'to` of the mail: must be exactly one'],
    [
      'a line break in an address',
      { cc: '${input.x}' },
      { x: 'b@x\r\nBcc: evil@e' },
      'cc` of the mail: has a line break',
    ],
    ['a header of the message', { headers: '${input.x}' }, { x: { BCC: 'evil@e.com' } }, 'belongs to the message'],
    ['a header twice', { headers: '${input.x}' }, { x: { 'X-A': '1', 'x-a': '2' } }, 'given twice'],
    [
      'more than 50 recipients',
      { to: '${input.x}' },
      { x: Array.from({ length: 51 }, (_, i) => `a${i}@x.com`) },
      'at most 50',
    ],
    ['nobody', { to: '${input.x}' }, { x: [] }, 'has no address'],
    ['no text', { body: '${input.x}' }, { x: '' }, 'a mail needs a text'],
  ])('%s', async (_what, config, input, message) => {
    expect(await refused(config, input)).toContain(message);
  });
});

describe('a definition is refused at load', () => {
  const { to: _to, ...unaddressed } = PLAIN;
  const batch = { recipients: [] };
  it.each<[string, object, string]>([
    ['without a text', { body: null }, 'INVALID_DEFINITION flow[0].config: needs a text'],
    ['without recipients', { to: null }, 'needs recipients'],
    ['with a wrong address', { to: ['ada@example.com', 'bob'] }, 'flow[0].config.to[1]: must be exactly one address'],
    ['with a line break in its subject', { subject: 'a\nb' }, 'flow[0].config.subject: has a line break'],
    ['with a header of the message', { headers: { Bcc: 'x@y.z' } }, 'belongs to the message'],
    ['with `to` in a batch', { batch }, 'flow[0].config.to: is set in addition to `batch`'],
    ['with a rate of a single mail', { rateLimit: 5 }, 'flow[0].config.rateLimit: is for a `batch`'],
    [
      'with a template',
      { template: 'welcome' },
      'flow[0].config.template: must be a reference such as `template://welcome@production`',
    ],
    ['with a key that nobody knows', { subjct: 'x' }, 'flow[0].config.subjct: is not a key of `email`'],
    ['with a template as address', { to: '{{ email }}' }, 'flow[0].config.to: is not a template'],
    ['with a template as name of the sender', { fromName: '{{ shop }}' }, 'flow[0].config.fromName: is not a template'],
    [
      'with a template as name of a file',
      { attachments: [{ filename: '{{ id }}.txt', content: 'x' }] },
      'flow[0].config.attachments[0].filename: is not a template; write ${...}',
    ],
    [
      'with a template in another header',
      { headers: { 'X-Id': '{{ id }}' } },
      'config.headers.X-Id: is not a template',
    ],
    [
      'with a template in a header in other letters',
      { headers: { 'list-unsubscribe': '{{ id }}' } },
      'is not a template',
    ],
    ['with a wrong setting', { port: 0 }, 'flow[0].config.port: must be a port'],
    ['with a sender that is not known yet', { provider: '${input.p}' }, 'must be a plain name'],
  ])('%s', (_what, config, message) => {
    expect(problems(config).join('\n')).toContain(message);
  });

  it('with `text`, and `body` is proposed', () => {
    const flow = [{ agent: 'a', operation: 'email', config: { ...PLAIN, text: 'x' } }];
    const load = () => createOrchestrator({ mail: { smtp: memoryMail() }, ensembles: [{ name: 'e', flow }] });
    expect(load).toThrow('did you mean `body`?');
  });

  it.each([0, -1, 1e9, 0.05, '5'])('with the rate %j', (rateLimit) => {
    const ensemble = {
      name: 'e',
      flow: [{ agent: 'a', operation: 'email', config: { ...unaddressed, batch, rateLimit } }],
    };
    const load = () => createOrchestrator({ mail: { smtp: memoryMail() }, ensembles: [ensemble] });
    expect(load).toThrow('must be a number of e-mails per second from 0.1 to 1000');
  });

  it('with a setting that its sender does not take', () => {
    const sender: MailSender = { settings: ['apiKey'], send: () => ({ messageId: '1' }) };
    expect(problems({ host: 'mail.example' }, { smtp: sender })).toEqual([
      'INVALID_DEFINITION flow[0].config.host: is not a key of `email`, and mail sender `smtp` takes the settings `apiKey`',
    ]);
  });

  it('with what its sender finds in the settings', () => {
    const check: MailSender['check'] = ({ apiKey }) =>
      apiKey === undefined ? [{ path: [], message: 'needs an `apiKey`', notConfigured: true }] : [];
    const sender: MailSender = { settings: ['apiKey'], check, send: () => ({ messageId: '1' }) };
    expect(problems({}, { smtp: sender })).toEqual(['NOT_CONFIGURED flow[0].config: needs an `apiKey`']);
    expect(problems({ apiKey: '${input.key}' }, { smtp: sender })).toEqual([]);
  });
});

describe('a sender that is missing is NOT_CONFIGURED, with the option to set', () => {
  it.each([
    [
      'smtp',
      "the option `mail: { smtp: smtpMail({ host, port, auth }) }`, with `smtpMail` from 'ensemble-orchestrator/smtp'",
    ],
    [
      'platform',
      "`mail: { platform: platformMail(env.EMAIL) }`, with `platformMail` from 'ensemble-orchestrator/workers'",
    ],
    [
      'postmark',
      'there is no mail sender `postmark` (configured: `other`); pass createOrchestrator the option `mail.postmark`',
    ],
  ])('%s', (provider, message) => {
    const [issue] = problems({ provider }, { other: memoryMail() });
    expect(issue).toContain(message);
    expect(issue).toMatch(/^NOT_CONFIGURED flow\[0\]\.config\.provider: /);
  });

  it('`thirdparty` needs only its key, in the config', async () => {
    const url = 'https://api.resend.com/emails';
    const http = stubHttp({ [`POST ${url}`]: { json: { id: 'mail-1' } } });
    const config = { provider: 'thirdparty', apiKey: '${env.MAIL_KEY}' };
    const orchestrator = createTestOrchestrator({
      ensembles: [ensembleOf(config)],
      http,
      secrets: { MAIL_KEY: 're_1' },
    });
    const { output } = await orchestrator.execute('e');
    expect(output).toEqual({ send: { messageId: 'mail-1', success: true, provider: 'thirdparty' } });
    expect(http.calls[0]?.headers).toMatchObject({ authorization: 'Bearer re_1' });
    expect(problems({ provider: 'thirdparty' })).toEqual([
      expect.stringContaining('NOT_CONFIGURED flow[0].config.apiKey: '),
    ]);
  });

  it('unless one of several must be named', () => {
    const both = { a: memoryMail(), b: memoryMail() };
    expect(problems({}, both)).toEqual(['INVALID_DEFINITION flow[0].config: needs a `provider`: write `a` or `b`']);
  });
});

describe('a send that fails', () => {
  const busy = new OrchestratorError('AGENT_FAILED', 'the server is busy', { retryable: true });

  it('is made again with `retry`', async () => {
    let calls = 0;
    const onSend = () => {
      calls += 1;
      if (calls < 3) throw busy;
    };
    const { orchestrator, mail } = world({}, { retry: { maxAttempts: 3 } }, { onSend });
    const { status, duration } = await orchestrator.execute('e');
    expect([status, duration, mail.messages.length]).toEqual(['completed', 3_000, 1]);
  });

  it('leads to a fallback agent that reads `failed`', async () => {
    const [first, second] = [memoryMail({ onSend: () => Promise.reject(busy) }), memoryMail()];
    const orchestrator = createTestOrchestrator({
      mail: { smtp: first, thirdparty: second },
      ensembles: [
        {
          name: 'e',
          flow: [
            { agent: 'send', operation: 'email', config: { ...PLAIN, provider: 'smtp' } },
            {
              agent: 'other',
              operation: 'email',
              config: { ...PLAIN, provider: 'thirdparty' },
              condition: '${send.failed}',
            },
          ],
        },
      ],
    });
    const { status } = await orchestrator.execute('e');
    expect([status, first.messages.length, second.messages.length]).toEqual(['completed', 0, 1]);
  });

  it('fails with TIMEOUT when the sender does not answer in time, and may have been sent', async () => {
    const { orchestrator } = world({ timeout: '5s' }, {}, { onSend: () => new Promise(() => {}) });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(4_999);
    expect((await orchestrator.executions.get(id)).status).toBe('running');
    await orchestrator.clock.advance(1);
    const { error } = await orchestrator.result(id);
    expect(error).toMatchObject({ code: 'TIMEOUT', message: 'mail sender `smtp` did not answer within 5000 ms' });
    expect(error?.details).toEqual({ timeoutMs: 5_000, outcome: 'unknown' });
  });

  it('shows nothing of what a sender of the host threw, and no setting that is secret', async () => {
    const thrown = new Error('login failed: hunter2-hunter2');
    const plain = await world({}, {}, { onSend: () => Promise.reject(thrown) }).orchestrator.execute('e');
    expect(plain.error?.message).toBe('mail sender `smtp` failed; the log has its error');
    const known = new OrchestratorError('AGENT_FAILED', 'login of user-7 failed: hunter2-hunter2');
    const config = { auth: { user: 'user-7', pass: '${input.pass}' } };
    const { orchestrator } = world(config, {}, { onSend: () => Promise.reject(known) });
    expect((await orchestrator.execute('e', { pass: 'hunter2-hunter2' })).error?.message).toBe(
      'login of user-7 failed: ***',
    );
  });

  it('ends with the execution that is cancelled', async () => {
    let reason: unknown;
    const onSend: MemoryMailOptions['onSend'] = (_message, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason;
          reject(reason);
        });
      });
    const { orchestrator } = world({}, {}, { onSend });
    const handle = await orchestrator.start('e');
    await orchestrator.clock.advance(0);
    handle.cancel();
    expect((await handle.result()).status).toBe('cancelled');
    expect(reason).toBeInstanceOf(Error);
  });
});

it('the older form `Email` is the same operation', async () => {
  const mail = memoryMail();
  const ensemble = { name: 'e', flow: [{ member: 'send', type: 'Email', config: PLAIN }] };
  const orchestrator = createTestOrchestrator({ mail: { smtp: mail }, ensembles: [ensemble as never] });
  expect([(await orchestrator.execute('e')).status, mail.messages.length]).toEqual(['completed', 1]);
});

it('`close()` closes each sender once, also if one fails', async () => {
  const closed: string[] = [];
  const sender = (name: string): MailSender => ({
    send: () => ({ messageId: '1' }),
    close: () => {
      closed.push(name);
      throw new Error('no');
    },
  });
  const a = sender('a');
  await createOrchestrator({ mail: { a, again: a, b: sender('b') } }).close();
  expect(closed).toEqual(['a', 'b']);
});

it.each<[unknown, string]>([
  [{ smtp: {} }, '`mail.smtp` must be a MailSender with send'],
  [{ smtp: { send() {}, settings: 'apiKey' } }, '`mail.smtp`: `settings` must be a list of texts'],
  [[], '`mail` must be an object'],
])('the option `mail` %j is a TypeError', (mail, message) => {
  expect(() => createOrchestrator({ mail: mail as never })).toThrow(message);
});
