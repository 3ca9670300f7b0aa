/** The option `mail`: its check, and the senders that the `email` operation knows. */

import { thirdpartyMail } from '../../adapters/mail/thirdparty-mail.ts';
import { aFunction, hasMethods, isTextList, optional, readOptions } from '../../engine/base/read-options.ts';
import type { MailSender } from '../../engine/operation/mail.port.ts';

type Senders = Readonly<Record<string, MailSender>>;

/** @throws TypeError */
export function checkMailSender(name: string, given: MailSender): void {
  const what = `createOrchestrator: \`mail.${name}\``;
  if (!hasMethods(given, ['send'])) throw new TypeError(`${what} must be a MailSender with send, such as memoryMail()`);
  const { settings, secrets, check, close } = given;
  const texts = optional('a list of texts', isTextList);
  readOptions(
    what,
    { settings, secrets, check, close },
    { settings: texts, secrets: texts, check: aFunction, close: aFunction },
  );
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
