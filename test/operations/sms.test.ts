/** The `sms` operation: what it checks, what it sends, and how it fails. */

import { describe, expect, it } from 'vitest';
import { createTestOrchestrator, memorySms, type TestOrchestratorOptions } from '../../src/entries/testing.ts';
import { isOrchestratorError, OrchestratorError } from '../../src/index.ts';

type Fields = Readonly<Record<string, unknown>>;

const TO = '+48123456789';

function setup(config: Fields, options: TestOrchestratorOptions = {}, agent: Fields = {}) {
  const sms = memorySms();
  const flow = [{ agent: 'a', operation: 'sms', config, ...agent }];
  const orchestrator = createTestOrchestrator({
    ensembles: [{ name: 'e', flow, outputs: { a: '${a.output}' } } as never],
    sms: { twilio: sms },
    ...options,
  });
  return { sms, orchestrator, run: (input: unknown = {}) => orchestrator.execute('e', input) };
}

function issuesOf(config: Fields, options?: TestOrchestratorOptions) {
  try {
    setup(config, options);
  } catch (error) {
    if (isOrchestratorError(error)) {
      const { issues } = error.details as { issues: { path: string; message: string; suggestion?: string }[] };
      return { code: error.code, issues };
    }
    throw error;
  }
  return { code: undefined, issues: [] };
}

describe('a message', () => {
  it('has the filled in body, and the output has its id and its provider', async () => {
    const config = { to: '${input.phone}', body: 'Hi {{ name }}, {{ input.phone }}', from: 'Shop' };
    const { run, sms } = setup(config, {}, { input: { name: 'Ada' } });
    const { output } = await run({ phone: TO });
    expect(output).toEqual({ a: { messageId: 'sms_1', success: true, provider: 'twilio' } });
    expect(sms.messages).toEqual([
      { to: TO, body: `Hi Ada, ${TO}`, from: 'Shop', idempotencyKey: expect.stringMatching(/^[0-9a-f]{32}$/) },
    ]);
  });

  it('goes to the sender that `provider` names, without a `from` that is null', async () => {
    const [one, two] = [memorySms(), memorySms()];
    const { run } = setup({ to: TO, body: 'x', provider: 'two', from: '${input.from}' }, { sms: { one, two } });
    await run();
    expect([one.messages.length, two.messages]).toMatchObject([0, [{ to: TO, body: 'x' }]]);
    expect(Object.keys(two.messages[0] ?? {})).toEqual(['to', 'body', 'idempotencyKey']);
  });

  it('is not sent again after a crash, once its result is stored', async () => {
    const sms = memorySms();
    const flow = [
      { agent: 'a', operation: 'sms', config: { to: TO, body: 'once' } },
      { wait: 'go' },
      { agent: 'b', operation: 'sms', config: { to: TO, body: 'after' } },
    ];
    const orchestrator = createTestOrchestrator({ ensembles: [{ name: 'e', flow } as never], sms: { twilio: sms } });
    const { id } = await orchestrator.start('e');
    await orchestrator.clock.advance(0);
    const next = await orchestrator.crash();
    await next.executions.signal(id, 'go');
    await next.result(id);
    expect(sms.messages.map(({ body }) => body)).toEqual(['once', 'after']);
  });
});

describe('at load', () => {
  const at = (config: Fields) => issuesOf({ to: TO, body: 'x', ...config });

  it.each([
    [{ to: '48123456789' }, 'to', 'E.164'],
    [{ to: '+48 123 456 789' }, 'to', 'E.164'],
    [{ to: '+0123456789' }, 'to', 'E.164'],
    [{ to: '+1234567890123456' }, 'to', 'E.164'],
    [{ to: 48123456789 }, 'to', 'in quotes'],
    [{ to: [TO] }, 'to', 'E.164'],
    [{ body: ' ' }, 'body', 'must not be empty'],
    [{ body: 'x'.repeat(1601) }, 'body', 'at most 1600 characters'],
    [{ from: '' }, 'from', '1 to 64 characters'],
    [{ from: 'a\nb' }, 'from', 'control characters'],
    [{ subject: 'x' }, 'subject', 'subject'],
  ])('refuses %j', (given, key, message) => {
    expect(at(given)).toMatchObject({
      code: 'INVALID_DEFINITION',
      issues: [{ path: `flow[0].config.${key}`, message: expect.stringContaining(message) }],
    });
  });

  it('needs a recipient and a body', () => {
    expect(issuesOf({ to: TO }).issues).toMatchObject([{ message: expect.stringContaining('body') }]);
    expect(issuesOf({ body: 'x' }).issues).toMatchObject([{ message: expect.stringContaining('to') }]);
  });

  it('a sender that is not configured is named, with the option that configures it', () => {
    expect(issuesOf({ to: TO, body: 'x' }, { sms: {} })).toMatchObject({
      code: 'NOT_CONFIGURED',
      issues: [{ message: expect.stringContaining('`sms: { twilio: twilioSms({ accountSid, authToken, from }) }`') }],
    });
    expect(at({ provider: 'twillio' })).toMatchObject({
      code: 'NOT_CONFIGURED',
      issues: [
        { path: 'flow[0].config.provider', message: expect.stringContaining('`sms.twillio`'), suggestion: 'twilio' },
      ],
    });
    expect(issuesOf({ to: TO, body: 'x' }, { sms: { a: memorySms(), b: memorySms() } })).toMatchObject({
      code: 'INVALID_DEFINITION',
      issues: [{ message: expect.stringContaining('needs a `provider`') }],
    });
    expect(at({ provider: '${input.p}' }).issues).toMatchObject([{ message: expect.stringContaining('plain name') }]);
  });

  it('the option `sms` takes senders only', () => {
    for (const sms of [[], { twilio: {} }, { twilio: null }, 5])
      expect(() => createTestOrchestrator({ sms: sms as never })).toThrow(TypeError);
  });
});

describe('failures', () => {
  it('a value that only the execution knows is checked before the message is sent', async () => {
    const { run, sms } = setup({ to: '${input.phone}', body: '{{ text }}' }, {}, { retry: { maxAttempts: 3 } });
    for (const [input, message] of [
      [{ phone: '0048 1', text: 'x' }, 'E.164'],
      [{ phone: TO, text: '' }, 'must not be empty'],
      [{ phone: TO, text: 'x'.repeat(1601) }, 'at most 1600'],
    ] as const) {
      const { error, agents } = await run(input);
      expect(error).toMatchObject({ code: 'INVALID_INPUT', message: expect.stringContaining(message) });
      expect(agents[0]?.attempts).toBe(1);
    }
    expect(sms.messages).toEqual([]);
  });

  it('keep what the sender says, and retry only if it says so', async () => {
    let calls = 0;
    const busy = new OrchestratorError('AGENT_FAILED', 'busy', { retryable: true, details: { retryAfterMs: 5_000 } });
    const sms = memorySms({
      onSend() {
        calls += 1;
        if (calls === 1) throw busy;
        if (calls === 3) throw new OrchestratorError('INVALID_INPUT', 'no such number', { details: { code: 21211 } });
      },
    });
    const { run } = setup({ to: TO, body: 'x' }, { sms: { twilio: sms } }, { retry: { maxAttempts: 3 } });
    const first = await run();
    expect([first.status, calls, (first.duration ?? 0) >= 5_000]).toEqual(['completed', 2, true]);
    const second = await run();
    expect(second.error).toMatchObject({ code: 'INVALID_INPUT', message: 'no such number', details: { code: 21211 } });
    expect(calls).toBe(3);
    expect(sms.messages.length).toBe(1);
  });

  it('of another kind are told to the log only, and so is an answer without an id', async () => {
    const lines: string[] = [];
    const log = (fields: object) => void lines.push(String((fields as { err?: unknown }).err));
    const logger = { debug() {}, info() {}, warn() {}, error: log };
    const senders = [
      memorySms({ onSend: () => Promise.reject(new Error('password hunter22')) }),
      { send: () => ({}) as never },
    ];
    for (const sender of senders) {
      const { run } = setup({ to: TO, body: 'x' }, { sms: { twilio: sender }, logger, errors: { stack: false } });
      const { error } = await run();
      expect(error).toMatchObject({ code: 'AGENT_FAILED', details: { outcome: 'unknown' } });
      expect(JSON.stringify(error)).not.toContain('hunter22');
    }
    expect(lines.join('\n')).toMatch(/hunter22[\s\S]*gave no `messageId`/);
  });
});
