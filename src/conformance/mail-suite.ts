/** The conformance suite of the mail port: the rules that every `MailSender` must follow. It runs on any test runner with `describe` and `it`. */

import type { SuiteRunner } from './http-suite.ts';
import { contentCases } from './mail-suite/contents.ts';
import { type MailWorld, mailContext } from './mail-suite/context.ts';
import { failureCases } from './mail-suite/failures.ts';
import { recipientCases } from './mail-suite/recipients.ts';

export interface MailSuiteOptions {
  readonly name: string;
  /** Opens a sender, and a server that has received no mail. Each test opens one, and closes it. */
  readonly create: () => MailWorld | Promise<MailWorld>;
  /** The same with a server that takes the connection and never answers. Without it, the tests of timeouts are left out. */
  readonly createSilent?: (() => MailWorld | Promise<MailWorld>) | undefined;
  readonly test: SuiteRunner;
}

/**
 * Declares the suite's tests.
 *
 * @param options - see {@link MailSuiteOptions}
 * @example
 * ```ts
 * import { memoryMail } from 'ensemble-orchestrator';
 * import { mailSuite } from 'ensemble-orchestrator/conformance';
 *
 * const titles: string[] = [];
 * const test = { describe: (_name: string, body: () => void) => body(), it: (title: string) => void titles.push(title) };
 * mailSuite({
 *   name: 'memoryMail',
 *   create() {
 *     const sender = memoryMail();
 *     const received = () =>
 *       sender.messages.map(({ to, cc, bcc, ...mail }) => ({
 *         ...mail, to, cc, recipients: [...to, ...cc, ...bcc].map(({ address }) => address),
 *       }));
 *     return { sender, received };
 *   },
 *   test, // With vitest: `{ describe, it }`.
 * });
 * console.log(titles.length > 10); // true
 * ```
 */
export function mailSuite(options: MailSuiteOptions): void {
  const { describe, it } = options.test;
  const { create, createSilent } = options;
  describe(`${options.name} as a MailSender`, () => {
    const context = mailContext(create, it);
    contentCases(context);
    recipientCases(context);
    failureCases(context, createSilent && mailContext(createSilent, it));
  });
}
