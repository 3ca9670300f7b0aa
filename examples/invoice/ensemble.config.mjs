import { defineConfig, memoryMail, OrchestratorError } from 'ensemble-orchestrator';
import { embeddedPdf } from 'ensemble-orchestrator/pdf';
import { smtpMail } from 'ensemble-orchestrator/smtp';

const { SMTP_HOST: host, SMTP_PORT: port, SMTP_USER: user, SMTP_PASS: pass } = process.env;

/** The mails of the example if no SMTP server is set. It sends none, and refuses one recipient, as a mail server may. */
export const kept = host
  ? undefined
  : memoryMail({
      onSend({ to }) {
        if (to[0].address.startsWith('gone@')) throw new OrchestratorError('INVALID_INPUT', 'there is no such mailbox');
      },
    });

export default defineConfig({
  pdf: embeddedPdf(),
  mail: {
    smtp: kept ?? smtpMail({ host, ...(port && { port: Number(port) }), ...(user && { auth: { user, pass } }) }),
  },
});
