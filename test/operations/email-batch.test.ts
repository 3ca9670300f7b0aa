/** A batch of the `email` operation: each recipient has a result of its own, which survives crashes and retries. */

import { describe, expect, it, test } from 'vitest';
import { copyJson } from '../../src/engine/base/json/json.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator, manualClock, stubHttp, type TestOrchestrator } from '../../src/entries/testing.ts';
import {
  type BatchOutput,
  type Json,
  type MemoryMail,
  type MemoryMailOptions,
  memoryMail,
  memoryStorage,
  type OperationContext,
  OrchestratorError,
} from '../../src/index.ts';
import { emailOperation } from '../../src/operations/email/email-operation.ts';
import { newFile } from '../storage/sqlite-files.ts';
import { operationContext } from './operation-context.ts';

const NEWS = { from: 'news@example.com', subject: 'Hello {{ name }}', html: '<p>{{ name }}</p>' };
const people = (count: number) => Array.from({ length: count }, (_, i) => ({ email: `p${i}@x.com`, name: `P${i}` }));

function world(options: MemoryMailOptions & { config?: object; fields?: object; options?: object } = {}) {
  const { config = {}, fields = {}, options: more = {}, ...ofMail } = options;
  const mail = memoryMail(ofMail);
  const batch = { recipients: '${input.people}' };
  const orchestrator = createTestOrchestrator({
    mail: { smtp: mail },
    ensembles: [
      {
        name: 'e',
        flow: [{ agent: 'send', operation: 'email', config: { ...NEWS, batch, ...config }, ...fields }],
        outputs: { send: '${send.output}' },
      },
    ],
    ...more,
  });
  return { mail, orchestrator: orchestrator as unknown as TestOrchestrator<Record<string, never>> };
}

type Orchestrator = ReturnType<typeof world>['orchestrator'];
const run = (orchestrator: Orchestrator, list: readonly unknown[]) =>
  orchestrator.execute('e' as never, ...([{ people: list }] as never));
const outputOf = ({ output }: { readonly output: unknown }) => (output as { send: BatchOutput }).send;
const recipients = ({ messages }: MemoryMail) => messages.map(({ to }) => to[0]?.address);

const busy = () =>
  new OrchestratorError('AGENT_FAILED', 'the server is busy', { retryable: true, details: { status: 503 } });

describe('a batch', () => {
  it('a recipient without a field that a text reads fails with the name of the field, unless the text gives another value', async () => {
    const list = [{ email: 'a@x.com', name: 'Ada' }, { email: 'b@x.com' }, { email: 'c@x.com', name: null }];
    const { mail, orchestrator } = world();
    const output = outputOf(await run(orchestrator, list));
    expect(output).toMatchObject({ sent: 2, failed: 1, errors: [{ email: 'b@x.com', code: 'INVALID_INPUT' }] });
    expect(output.errors[0]?.message).toMatch(/the text `html` reads `name`, .*\{\{ name \|\| '...' \}\}/);
    expect(recipients(mail)).toEqual(['a@x.com', 'c@x.com']);
    const other = world({ config: { subject: "Hello {{ name || 'there' }}", html: '<p>News</p>' } });
    expect(outputOf(await run(other.orchestrator, list))).toMatchObject({ sent: 3, failed: 0 });
    expect(other.mail.messages.map(({ subject }) => subject)).toEqual(['Hello Ada', 'Hello there', 'Hello there']);
  });

  it('sends a mail to each recipient, with its own fields, escaped in HTML', async () => {
    const { mail, orchestrator } = world({
      config: { headers: { 'List-Unsubscribe': '<https://e.com/{{ urlEncode(id) }}>' } },
    });
    const list = [
      { email: 'a@x.com', name: 'Ada', id: 'a/1' },
      { email: 'b@x.com', name: '<script>x</script> & "Co"', id: 'b>' },
    ];
    const output = outputOf(await run(orchestrator, list));
    const messageIds = mail.messages.map(({ messageId }) => messageId);
    expect(output).toEqual({ sent: 2, failed: 0, messageIds, errors: [], provider: 'smtp' });
    expect(new Set(messageIds).size).toBe(2);
    expect(
      mail.messages.map(({ to, subject, html, headers }) => [to, subject, html, headers['List-Unsubscribe']]),
    ).toEqual([
      [[{ address: 'a@x.com' }], 'Hello Ada', '<p>Ada</p>', '<https://e.com/a%2F1>'],
      [
        [{ address: 'b@x.com' }],
        'Hello <script>x</script> & "Co"',
        '<p>&lt;script&gt;x&lt;/script&gt; &amp; &quot;Co&quot;</p>',
        '<https://e.com/b%3E>',
      ],
    ]);
  });

  it('never reads a value of a recipient as a template', async () => {
    const { mail, orchestrator } = world();
    await run(orchestrator, [{ email: 'a@x.com', name: '{{ email }} ${env.X} {{ constructor }}' }]);
    expect(mail.messages[0]?.subject).toBe('Hello {{ email }} ${env.X} {{ constructor }}');
  });

  it('fails for a recipient whose mail can not be sent as it is, and continues with the others', async () => {
    const { mail, orchestrator } = world();
    const list = [
      { email: 'a@x.com', name: 'A\r\nBcc: evil@e.com' },
      { email: 'b@x.com, c@x.com', name: 'B' },
      { email: 'D <d@x.com>', name: 'D' },
      { email: 'e@x.com', name: 'E' },
    ];
    const { sent, failed, errors } = outputOf(await run(orchestrator, list));
    expect([sent, failed, recipients(mail)]).toEqual([1, 3, ['e@x.com']]);
    expect(errors.map(({ email, index, code }) => [email, index, code])).toEqual(
      list.slice(0, 3).map(({ email }, index) => [email, index, 'INVALID_INPUT']),
    );
    expect(errors[0]?.message).toBe(
      '`subject` of the mail: has a line break or another control character (U+000D) at 7; remove it',
    );
  });

  it('without recipients sends nothing', async () => {
    expect(outputOf(await run(world().orchestrator, []))).toMatchObject({ sent: 0, failed: 0, messageIds: [] });
  });

  it('has at most 1,000 recipients, each with an `email`', async () => {
    const { mail, orchestrator } = world();
    for (const list of [people(1_001), [{ name: 'x' }], ['a@x.com']])
      expect((await run(orchestrator, list)).error?.code).toBe('INVALID_INPUT');
    expect(mail.messages).toEqual([]);
  });

  it('refuses the key `__proto__` in a recipient', async () => {
    const list = JSON.parse('[{"email":"a@x.com","__proto__":{"name":"x"}}]');
    await expect(run(world().orchestrator, list)).rejects.toThrow('__proto__');
  });

  it('shows each send as a step and as an event while it runs', async () => {
    const fails: MemoryMailOptions['onSend'] = ({ to }) => {
      if (to[0]?.address === 'p1@x.com') throw new OrchestratorError('INVALID_INPUT', 'no such mailbox');
    };
    const { orchestrator } = world({ onSend: fails });
    const events: unknown[] = [];
    orchestrator.on('send.completed', ({ data }) => events.push([data.agent, data.key, data.to, data.isError]));
    const { id } = await run(orchestrator, people(3));
    expect(events).toEqual([
      ['send', 'flow[0].send[1]', 'p0@x.com', false],
      ['send', 'flow[0].send[2]', 'p1@x.com', true],
      ['send', 'flow[0].send[3]', 'p2@x.com', false],
    ]);
    const { steps } = await orchestrator.executions.steps(id);
    expect(steps.map(({ key, kind, name, status, error }) => [key, kind, name, status, error?.message])).toEqual([
      ['flow[0].send[1]', 'send', 'p0@x.com', 'completed', undefined],
      ['flow[0].send[2]', 'send', 'p1@x.com', 'failed', 'no such mailbox'],
      ['flow[0].send[3]', 'send', 'p2@x.com', 'completed', undefined],
      ['flow[0]', 'agent', 'send', 'completed', undefined],
    ]);
  });
});

describe('the agent', () => {
  it('fails when no mail was sent, with the first failure and the counts', async () => {
    const { orchestrator } = world({ onSend: () => Promise.reject(busy()) });
    const { error } = await run(orchestrator, people(3));
    expect(error).toMatchObject({
      code: 'AGENT_FAILED',
      message: 'no mail of the batch was sent. The first failure: the server is busy',
      details: { status: 503, sent: 0, failed: 3 },
    });
  });

  it('tries with `retry` those that may pass, and no other', async () => {
    const tried: (string | undefined)[] = [];
    let round = 0;
    const onSend: MemoryMailOptions['onSend'] = ({ to }) => {
      const address = to[0]?.address;
      if (address === 'p1@x.com') round += 1;
      tried.push(address);
      if (address === 'p0@x.com') throw new OrchestratorError('INVALID_INPUT', 'no such mailbox');
      if (round < 3) throw busy();
    };
    const { orchestrator } = world({ onSend, fields: { retry: { maxAttempts: 3 } } });
    const ended = await run(orchestrator, people(3));
    expect([ended.status, ended.agents[0]?.attempts]).toEqual(['completed', 3]);
    expect(outputOf(ended)).toMatchObject({ sent: 2, failed: 1, errors: [{ index: 0, message: 'no such mailbox' }] });
    const [p0, p1, p2] = people(3).map(({ email }) => email);
    expect(tried).toEqual([p0, p1, p2, p1, p2, p1, p2]);
  });

  it('completes when one mail was sent, and does not try the others again', async () => {
    let calls = 0;
    const onSend: MemoryMailOptions['onSend'] = ({ to }) => {
      calls += 1;
      if (to[0]?.address === 'p1@x.com') throw busy();
    };
    const { orchestrator } = world({ onSend, fields: { retry: { maxAttempts: 3 } } });
    const { sent, failed } = outputOf(await run(orchestrator, people(4)));
    expect([sent, failed, calls]).toEqual([3, 1, 4]);
  });

  it.each([
    ['the provider refuses the caller', new OrchestratorError('AGENT_FAILED', 'wrong key')],
    ['a setting is missing', new OrchestratorError('NOT_CONFIGURED', 'no `apiKey`')],
  ])('asks no more when %s', async (_what, failure) => {
    let calls = 0;
    const onSend = () => {
      calls += 1;
      if (calls > 2) throw failure;
    };
    const { sent, failed, errors } = outputOf(await run(world({ onSend }).orchestrator, people(10)));
    expect([sent, failed, calls]).toEqual([2, 8, 3]);
    expect(errors[1]).toEqual({
      ...{ email: 'p3@x.com', index: 3, code: failure.code },
      message: `not tried, because of an earlier failure: ${failure.message}`,
    });
  });

  it('stores no result of a send that a cancellation ended', async () => {
    const onSend: MemoryMailOptions['onSend'] = ({ to }, { signal }) =>
      to[0]?.address === 'p0@x.com'
        ? undefined
        : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const { orchestrator } = world({ onSend });
    const handle = await orchestrator.start('e' as never, ...([{ people: people(3) }] as never));
    await orchestrator.clock.advance(10);
    handle.cancel();
    expect((await handle.result()).status).toBe('cancelled');
    const { steps } = await orchestrator.executions.steps(handle.id);
    expect(steps.map(({ key }) => key)).toEqual(['flow[0].send[1]']);
  });

  it('goes on in the next attempt when its `timeout` ended the one before', async () => {
    let hangs = true;
    const onSend: MemoryMailOptions['onSend'] = ({ to }) => {
      if (hangs && to[0]?.address === 'p2@x.com') return new Promise(() => {});
    };
    const { mail, orchestrator } = world({ onSend, fields: { timeout: '10s', retry: { maxAttempts: 2 } } });
    const { id } = await orchestrator.start('e' as never, ...([{ people: people(4) }] as never));
    await orchestrator.clock.advance(5_000);
    hangs = false;
    await orchestrator.clock.advance(6_000);
    const { sent, failed } = outputOf(await orchestrator.result(id));
    expect([sent, failed, recipients(mail)]).toEqual([4, 0, people(4).map(({ email }) => email)]);
  });
});

describe('`executions.retry` of a failed batch', () => {
  it('sends to all that the mail was not sent to', async () => {
    let down: OrchestratorError | undefined = new OrchestratorError('INVALID_INPUT', 'refused');
    const onSend = () => {
      if (down) throw down;
    };
    const { mail, orchestrator } = world({ onSend });
    const failed = await run(orchestrator, people(3));
    expect(failed.status).toBe('failed');
    down = undefined;
    const retried = await (await orchestrator.executions.retry(failed.id)).result();
    expect(outputOf(retried)).toMatchObject({ sent: 3, failed: 0 });
    expect(mail.messages).toHaveLength(3);
  });

  it('does not send again to those who have the mail', async () => {
    let calls = 0;
    const onSend: MemoryMailOptions['onSend'] = () => {
      calls += 1;
      return calls === 3 ? new Promise(() => {}) : undefined;
    };
    const { mail, orchestrator } = world({ onSend, fields: { timeout: '10s' } });
    const handle = await orchestrator.start('e' as never, ...([{ people: people(5) }] as never));
    await orchestrator.clock.advance(10_000);
    expect((await orchestrator.result(handle.id)).error?.code).toBe('TIMEOUT');
    const retried = await (await orchestrator.executions.retry(handle.id)).result();
    expect(outputOf(retried)).toMatchObject({ sent: 5, failed: 0 });
    expect(recipients(mail)).toEqual(people(5).map(({ email }) => email));
  });
});

it('a stored send to another address is not taken for one to this address', async () => {
  const mail = memoryMail();
  const stored = new Map<number, Json>();
  const step: OperationContext['step'] = async ({ number }, make) => {
    if (!stored.has(number)) stored.set(number, copyJson(await make()));
    return stored.get(number) as Json;
  };
  const operation = emailOperation({ senders: { smtp: mail }, http: stubHttp(), clock: manualClock() });
  const sendTo = (...emails: string[]) => {
    const batch = { recipients: emails.map((email) => ({ email })) };
    return operation.run(operationContext({ config: { from: 'a@x.com', subject: 's', body: 'b', batch }, step }));
  };
  await sendTo('a@x.com', 'b@x.com');
  expect(await sendTo('new@x.com', 'b@x.com')).toMatchObject({ sent: 2, failed: 0 });
  expect(recipients(mail)).toEqual(['a@x.com', 'b@x.com', 'new@x.com']);
  // Providers and mailboxes take two mails with one id for the same mail.
  expect(new Set(mail.messages.map(({ messageId }) => messageId)).size).toBe(3);
});

/** Runs a batch whose process dies in the send of recipient `at`: before the server has the mail, or after. */
async function crashed(count: number, at: number, has: boolean, options: object = {}) {
  const delivered: string[] = [];
  let dies = true;
  const onSend: MemoryMailOptions['onSend'] = ({ to }) => {
    const address = to[0]?.address as string;
    const isCrash = dies && address === `p${at}@x.com`;
    if (!isCrash || has) delivered.push(address);
    return isCrash ? new Promise(() => {}) : undefined;
  };
  const { orchestrator } = world({ onSend, options });
  const { id } = await orchestrator.start('e' as never, ...([{ people: people(count) }] as never));
  await orchestrator.clock.advance(0);
  while (dies && (await orchestrator.executions.steps(id)).steps.length < Math.min(at, 100))
    await orchestrator.clock.advance(0);
  dies = false;
  const next = await orchestrator.crash();
  const { sent, failed } = outputOf(await next.result(id));
  await next.close();
  return { delivered, sent, failed };
}

describe('after a crash in the middle of a batch', () => {
  it.each([
    ['memory', () => memoryStorage()],
    ['SQLite', () => sqliteStorage({ path: newFile() })],
  ])('at most the recipient of that moment gets the mail twice, on %s', async (_name, storage) => {
    const all = people(8).map(({ email }) => email);
    for (let at = 0; at < 8; at++) {
      for (const has of [false, true]) {
        const { delivered, sent, failed } = await crashed(8, at, has, { storage: storage() });
        const twice = has ? [`p${at}@x.com`] : [];
        expect([sent, failed, delivered.toSorted()]).toEqual([8, 0, [...all, ...twice].toSorted()]);
      }
    }
  });

  test('and no recipient of 1,000 is left out', { timeout: 120_000 }, async () => {
    for (const at of [0, 1, 499, 998, 999]) {
      const { delivered, sent, failed } = await crashed(1_000, at, true);
      expect([sent, failed, delivered.length, new Set(delivered).size]).toEqual([1_000, 0, 1_001, 1_000]);
    }
  });

  it('a recipient that failed before it is not tried again', async () => {
    const tried: string[] = [];
    let dies = true;
    const onSend: MemoryMailOptions['onSend'] = ({ to }) => {
      const address = to[0]?.address as string;
      tried.push(address);
      if (address === 'p0@x.com') throw busy();
      return dies && address === 'p2@x.com' ? new Promise(() => {}) : undefined;
    };
    const { orchestrator } = world({ onSend, fields: { retry: { maxAttempts: 5 } } });
    const { id } = await orchestrator.start('e' as never, ...([{ people: people(4) }] as never));
    while (!tried.includes('p2@x.com')) await orchestrator.clock.advance(0);
    dies = false;
    const { sent, failed } = outputOf(await (await orchestrator.crash()).result(id));
    expect([sent, failed, tried]).toEqual([3, 1, [0, 1, 2, 2, 3].map((i) => `p${i}@x.com`)]);
  });
});
