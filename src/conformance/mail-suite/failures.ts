/** Mail suite: what a sender does when it is stopped, or when the server does not answer. */

import { fails, same } from '../http-suite/context.ts';
import type { DeclareMailCase, MailCase } from './context.ts';

/** @param silent - declares a test whose server never answers */
export function failureCases(it: DeclareMailCase, silent: DeclareMailCase | undefined): void {
  it('sends nothing when the signal is aborted already, and rejects with its reason', async (mail) => {
    const reason = new Error('stopped');
    await rejectsWith(mail, AbortSignal.abort(reason), reason);
    same((await mail.world.received()).length, 0, 'number of received mails');
  });

  if (!silent) return;

  silent('ends a send whose signal aborts, and rejects with its reason', async (mail) => {
    const controller = new AbortController();
    const reason = new Error('stopped');
    const sent = rejectsWith(mail, controller.signal, reason);
    // The connection may be open or not: both must end.
    await Promise.resolve();
    controller.abort(reason);
    await sent;
  });

  silent('fails with TIMEOUT, which a retry may pass, when the server does not answer in time', async ({ send }) => {
    await fails(send({}, { timeoutMs: 200 }), 'TIMEOUT', true);
  });
}

async function rejectsWith({ send }: MailCase, signal: AbortSignal, reason: unknown): Promise<void> {
  const thrown: unknown = await send({}, { signal }).then(
    () => new Error('the send did not reject'),
    (error: unknown) => error,
  );
  same(thrown, reason, 'what the send rejected with');
}
