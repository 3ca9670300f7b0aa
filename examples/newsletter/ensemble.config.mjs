import { defineConfig, memoryMail, OrchestratorError } from 'ensemble-orchestrator';

/** Keeps the mails in memory, so that the example sends none. It refuses one recipient, as a mail server may. */
export const mail = memoryMail({
  onSend({ to }) {
    if (to[0].address.startsWith('gone@')) throw new OrchestratorError('INVALID_INPUT', 'there is no such mailbox');
  },
});

// A real sender takes the place of this one: see docs/operations/email.md.
export default defineConfig({ mail: { smtp: mail } });
