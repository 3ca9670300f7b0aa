/** The password and the key of a sender's own options are shown nowhere. */

import { describe, expect, it } from 'vitest';
import { createOrchestrator, type MailSender, OrchestratorError } from '../../src/index.ts';

const PASS = 'pass-phrase-42';

const send = `
name: mail
flow:
  - agent: send
    operation: email
    config: { from: a@example.com, to: b@example.com, subject: s, body: b }
`;

describe('`secrets` of a mail sender', () => {
  it('are masked in the record of an execution, in every spelling', async () => {
    const encoded = Buffer.from(`user:${PASS}`).toString('base64');
    const sender: MailSender = {
      secrets: [PASS],
      send() {
        throw new OrchestratorError('AGENT_FAILED', `refused ${PASS} and ${encoded}`);
      },
    };
    const lines: string[] = [];
    const log = (fields: object, text: string) => void lines.push(JSON.stringify(fields) + text);
    const logger = { debug: log, info: log, warn: log, error: log };
    const orchestrator = createOrchestrator({ ensembles: [send], mail: { smtp: sender }, logger });
    const run = await orchestrator.execute('mail');
    await orchestrator.close();
    expect(run.status).toBe('failed');
    expect(run.error?.message).toContain('refused');
    for (const shown of [JSON.stringify(run), lines.join()]) {
      expect(shown).not.toContain(PASS);
      expect(shown).not.toContain(encoded.slice(8, -4));
    }
  });

  it('must be texts', () => {
    const mail = { smtp: { send: () => ({ messageId: '1' }), secrets: PASS as never } };
    expect(() => createOrchestrator({ mail })).toThrow('`mail.smtp`: `secrets` must be a list of texts');
  });
});

describe('what a sender repeats of its key or its password', () => {
  const from = 'a@example.com';
  const mailTo = (to: object, apiKey: string | undefined) => ({
    name: 'mail',
    flow: [{ agent: 'send', operation: 'email', config: { from, subject: 's', body: 'b', apiKey, ...to } }],
    output: { sent: '${send.output}' },
  });
  const single = { to: 'b@example.com' };
  const batch = { batch: { recipients: [{ email: 'b@example.com' }, { email: 'c@example.com' }] } };

  const asId = (key: string) => ({ messageId: `id of ${key}` });
  const asFailure = (key: string): never => {
    const details = { said: `with ${key}`, all: { of: [key] } };
    throw new OrchestratorError('AGENT_FAILED', `refused ${key}`, { cause: new Error(key), details });
  };
  const asError = (key: string): never => {
    throw new Error(`refused ${key}`);
  };
  // One mail of the batch is sent, so that the output has the failure of the other.
  const inTurn = (key: string, count: number) => (count === 0 ? asId(key) : asFailure(key));

  it.each([
    ['the id of a mail', single, asId],
    ['a failure', single, asFailure],
    ['an error of another kind, which is logged', single, asError],
    ['the result of a batch', batch, inTurn],
  ])('is not in %s, wherever the key comes from', async (_title, to, answer) => {
    for (const apiKey of [PASS, '${env.KEY}', '${input.key}', undefined]) {
      let count = 0;
      const sender: MailSender = {
        settings: ['apiKey'],
        ...(apiKey === undefined && { secrets: [PASS] }),
        send: (_message, { settings }) => answer(String(settings.apiKey ?? PASS), count++),
      };
      const logged: string[] = [];
      const log = ({ err }: { readonly err?: unknown }, text: string) => {
        logged.push(text, err instanceof Error ? `${err.stack} ${err.cause}` : '');
      };
      const orchestrator = createOrchestrator({
        logger: { debug: log, info: log, warn: log, error: log },
        errors: { stack: true },
        ensembles: [mailTo(to, apiKey) as never],
        mail: { smtp: sender },
        // Not among `secrets`, of which all masking is done when they are shown.
        env: { KEY: PASS },
      });
      const { input: _input, ...run } = await orchestrator.execute('mail', { key: PASS });
      const { steps } = await orchestrator.executions.steps(run.id);
      await orchestrator.close();
      expect(count).toBeGreaterThan(0);
      expect(JSON.stringify({ run, steps, logged }), String(apiKey)).not.toContain(PASS);
    }
  });
});
