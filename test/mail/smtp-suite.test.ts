/** The suite of the mail port over SMTP, with a real server. */

import { describe, it } from 'vitest';
import { mailSuite } from '../../src/entries/conformance.ts';
import { smtpMail } from '../../src/entries/smtp.ts';
import { scriptedServer } from './scripted-server.ts';
import { smtpPeer } from './smtp-peer.ts';

const test = { describe, it };

mailSuite({
  name: 'smtpMail',
  async create() {
    const { port, received, close } = await smtpPeer();
    return { sender: smtpMail(), settings: { host: '127.0.0.1', port, secure: false }, received, close };
  },
  async createSilent() {
    const { port, close } = await scriptedServer({ banner: 'silent' });
    return { sender: smtpMail({ host: '127.0.0.1', port }), received: () => [], close };
  },
  test,
});

mailSuite({
  name: 'smtpMail with a connection for each mail',
  async create() {
    const { port, received, close } = await smtpPeer();
    return { sender: smtpMail({ host: '127.0.0.1', port, pool: false }), received, close };
  },
  test,
});
