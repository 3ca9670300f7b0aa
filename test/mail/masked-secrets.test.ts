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
    expect(() => createOrchestrator({ mail })).toThrow('`mail.smtp` has `secrets` that are not a list of texts');
  });
});
