/** Notifications by e-mail: both parts, the subject, which sender is used, and what is tried again. */

import { describe, expect, it } from 'vitest';
import type { MailMessage, MailSender } from '../../src/entries/adapter.ts';
import { createOrchestrator, OrchestratorError } from '../../src/index.ts';
import { ALL_EVENTS, setUp } from './setup.ts';

const ensemble = (fields = '') => `
name: pay
notifications:
  - { type: email, events: ${ALL_EVENTS}, to: [ops@example.com, "Ada <ada@example.com>"], from: "Flows <no-reply@example.com>"${fields} }
flow:
  - { agent: work, operation: code, config: { script: work } }
`;

function sender(send?: (message: MailMessage) => void) {
  const messages: MailMessage[] = [];
  const mail: MailSender = {
    send(message) {
      messages.push(message);
      send?.(message);
      return { messageId: message.messageId };
    },
  };
  return { mail, messages };
}

describe('an e-mail', () => {
  it('has the data as JSON in its text part, and a coloured HTML part without references', async () => {
    const { mail, messages } = sender();
    const { orchestrator, settle } = setUp({}, { mail: { smtp: mail }, ensembles: [ensemble()] });
    const { id } = await orchestrator.execute('pay', { order: 1 });
    await settle();
    expect(messages.map(({ subject }) => subject)).toEqual([
      'execution.started: pay',
      'agent.completed: pay',
      'execution.completed: pay',
    ]);
    const [started, , completed] = messages as [MailMessage, MailMessage, MailMessage];
    expect(completed).toMatchObject({
      from: { address: 'no-reply@example.com', name: 'Flows' },
      to: [{ address: 'ops@example.com' }, { address: 'ada@example.com', name: 'Ada' }],
      messageId: expect.stringMatching(/^<[0-9a-f]{32}@example\.com>$/),
    });
    expect(JSON.parse(String(completed.text))).toEqual({
      id,
      ensemble: 'pay',
      status: 'completed',
      output: {},
      duration: 0,
    });
    expect(completed.html).toContain('background:#15803d');
    expect(started.html).toContain('background:#1d4ed8');
    for (const { html = '' } of messages) expect(html).not.toMatch(/<(script|img|link|style|iframe)|https?:|url\(/i);
  });

  it('about a failure is red, and shows a message with HTML in it as text', async () => {
    const { mail, messages } = sender();
    const work = () => {
      throw new Error('<img src=x onerror=alert(1)> & "more"');
    };
    const { orchestrator, settle } = setUp({}, { mail: { smtp: mail }, scripts: { work }, ensembles: [ensemble()] });
    await orchestrator.execute('pay', { '</pre><script>': '<b>' });
    await settle();
    const [started, failed] = messages as [MailMessage, MailMessage];
    expect(failed.html).toContain('background:#b91c1c');
    expect(failed.html).toContain('&lt;img src=x onerror=alert(1)&gt; &amp; &quot;more&quot;');
    for (const { html } of [started, failed]) expect(html).not.toMatch(/<(img|script|b)[\s>]/);
  });

  it('has a subject with the event, the ensemble, the time and variables, on one line', async () => {
    const { mail, messages } = sender();
    const subject = ', subject: "[${env.STAGE}] ${event} of ${ensemble.name} at ${timestamp}"';
    const { orchestrator, settle } = setUp(
      {},
      { mail: { smtp: mail }, env: { STAGE: 'live\r\nBcc: x' }, ensembles: [ensemble(subject)] },
    );
    await orchestrator.execute('pay', {});
    await settle();
    expect(messages[0]?.subject).toBe('[live Bcc: x] execution.started of pay at 2026-01-01T00:00:00.000Z');
  });

  it('has its secrets masked in the subject', async () => {
    const { mail, messages } = sender();
    const ensembles = [ensemble(', subject: "${env.KEY} of ${ensemble.name}"')];
    const { orchestrator, settle } = setUp({}, { mail: { smtp: mail }, secrets: { KEY: 'a-secret-key' }, ensembles });
    await orchestrator.execute('pay', {});
    await settle();
    expect(messages[0]?.subject).toBe('*** of pay');
  });

  it('is sent again with the same id when the sender is busy, and not when it refuses the mail', async () => {
    const timesOf = async (retryable: boolean) => {
      const { mail, messages } = sender(() => {
        throw new OrchestratorError('AGENT_FAILED', 'busy', { retryable });
      });
      const { orchestrator, clock } = setUp(
        {},
        { mail: { smtp: mail }, ensembles: [ensemble().replace(ALL_EVENTS, '[execution.completed]')] },
      );
      await orchestrator.execute('pay', {});
      await clock.advance(600_000);
      expect(new Set(messages.map(({ messageId }) => messageId)).size).toBe(1);
      return messages.length;
    };
    expect([await timesOf(true), await timesOf(false)]).toEqual([4, 1]);
  });

  it('by a sender that never answers counts as broken after 30 seconds', async () => {
    const mail: MailSender = { send: () => new Promise(() => {}) };
    const { orchestrator, clock } = setUp(
      {},
      { mail: { smtp: mail }, ensembles: [ensemble().replace(ALL_EVENTS, '[execution.completed]')] },
    );
    await orchestrator.execute('pay', {});
    await clock.advance(30_000);
    const [delivery] = (await orchestrator.deliveries.list()).deliveries;
    expect(delivery).toMatchObject({
      type: 'email',
      receiver: 'email:smtp',
      to: 'smtp',
      attempts: [{ error: expect.stringContaining('30000 ms') }],
    });
  });
});

describe('the mail sender', () => {
  const load = (mail: Record<string, MailSender>, fields = '') =>
    createOrchestrator({ mail, logger: false, scripts: { work: () => 1 }, ensembles: [ensemble(fields)] });
  const { mail } = sender();

  it('is the only one of the host, or the one that the notification names', () => {
    expect(() => load({ smtp: mail })).not.toThrow();
    expect(() => load({ smtp: mail, other: mail }, ', provider: other')).not.toThrow();
  });

  it('must be known at load', () => {
    expect(() => load({})).toThrow('needs a mail sender: pass createOrchestrator the option `mail`');
    expect(() => load({ a: mail, b: mail })).toThrow('needs a `provider`: write `a` or `b`');
    expect(() => load({ a: mail }, ', provider: b')).toThrow('there is no mail sender `b` (configured: `a`)');
  });
});
