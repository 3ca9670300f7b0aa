/** The option `mail`: its check, and the senders that the `email` operation knows. */

import { thirdpartyMail } from '../adapters/mail/thirdparty-mail.ts';
import type { MailSender } from '../engine/ports/mail.ts';

type Senders = Readonly<Record<string, MailSender>>;

/** @throws TypeError */
export function checkMailSender(name: string, given: MailSender): void {
  const fail = (what: string) => {
    throw new TypeError(`createOrchestrator: \`mail.${name}\` ${what}`);
  };
  if (typeof given !== 'object' || given === null || typeof given.send !== 'function')
    fail('must be a MailSender with send, such as memoryMail()');
  const { settings, secrets, check, close } = given;
  for (const [key, list] of Object.entries({ settings, secrets }))
    if (list !== undefined && !(Array.isArray(list) && list.every((one) => typeof one === 'string')))
      fail(`has \`${key}\` that are not a list of ${key === 'settings' ? 'keys' : 'texts'}`);
  for (const [key, method] of Object.entries({ check, close }))
    if (method !== undefined && typeof method !== 'function') fail(`has a \`${key}\` that is not a function`);
}

/** The senders that need no option: `thirdparty` takes its key from the config of the agent. */
export function builtInSenders(): Senders {
  return { thirdparty: thirdpartyMail() };
}

/** What must never be shown of the senders' own options. */
export function mailSecrets(mail: Senders = {}): readonly string[] {
  return Object.values(mail).flatMap(({ secrets = [] }) => secrets);
}

/** Closes all senders, each once. */
export async function closeMail(mail: Senders = {}): Promise<void> {
  await Promise.allSettled([...new Set(Object.values(mail))].map(async (sender) => sender.close?.()));
}
