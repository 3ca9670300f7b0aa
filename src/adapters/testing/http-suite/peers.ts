/** HTTP suite: redirects, compression, limits, timeouts, aborts and broken exchanges. */

import { fails, type It, reason, type SuiteContext, same, text } from './context.ts';

export function peerCases({ create, peer, send, ask, isClosed }: SuiteContext, it: It): void {
  it('T36, A47: a redirect is an answer and is not followed: the target sees no request', async () => {
    const before = await ask('/count/redirected');
    const answer = await send('/redirect');
    same(answer.status, 302, 'status');
    if (!answer.headers.location?.endsWith('/redirected')) throw new Error('the location header is missing');
    same(await ask('/count/redirected'), before, 'requests at the target');
  });

  it('decodes gzip, deflate and br', async () => {
    for (const coding of ['gzip', 'deflate', 'br']) {
      const answer = await send(`/${coding}`, { headers: { 'accept-encoding': 'gzip, deflate, br' } });
      same(text(answer), 'squeezed', `${coding} body`);
      same(answer.headers['content-encoding'], undefined, 'content-encoding of a decoded body');
    }
  });

  it('T35: a chain of codings and an unknown coding are refused, never handed over undecoded', async () => {
    for (const name of ['encodings', 'zstd']) {
      reason(await fails(send(`/${name}`), 'AGENT_FAILED', true), 'encoding');
      await isClosed(name);
    }
  });

  it('T35: the limit counts decoded bytes, so a gzip bomb ends there', async () => {
    const error = await fails(send('/bomb', { maxResponseBytes: 1024 * 1024 }), 'AGENT_FAILED', false);
    reason(error, 'too-large');
    await isClosed('bomb');
  });

  it('T34: an endless body ends at the limit and its socket is closed', async () => {
    reason(await fails(send('/infinite', { maxResponseBytes: 100_000 }), 'AGENT_FAILED', false), 'too-large');
    await isClosed('infinite');
  });

  it('takes a body of exactly the limit and refuses one byte more', async () => {
    same((await send('/bytes', { maxResponseBytes: 256 })).body.byteLength, 256, 'bytes');
    reason(await fails(send('/bytes', { maxResponseBytes: 255 }), 'AGENT_FAILED', false), 'too-large');
  });

  for (const path of ['never', 'trickle']) {
    it(`T34: /${path} ends by the timeout, retryable, and its socket is closed`, async () => {
      await fails(send(`/${path}`, { timeoutMs: 80 }), 'TIMEOUT', true);
      await isClosed(path);
    });

    it(`an abort during /${path} rejects with the signal's own reason and closes the socket`, async () => {
      const controller = new AbortController();
      const why = new Error('no longer needed');
      const pending = send(`/${path}`, { signal: controller.signal });
      const outcome = pending.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      // Aborted once the peer has the request, so that a socket is there to be closed.
      while ((await ask(`/open/${path}`)) === 0);
      controller.abort(why);
      same(await outcome, why, 'what was thrown');
      await isClosed(path);
    });
  }

  it('an aborted signal sends nothing', async () => {
    const before = await ask('/count/echo');
    const why = new Error('never mind');
    const thrown = await send('/echo', { signal: AbortSignal.abort(why) }).catch((error: unknown) => error);
    same(thrown, why, 'what was thrown');
    same(await ask('/count/echo'), before, 'requests at the peer');
  });

  for (const path of ['reset', 'reset-mid-body', 'short', 'garbage']) {
    it(`T34: /${path} is a broken exchange: AGENT_FAILED, retryable`, async () => {
      const error = await fails(send(`/${path}`), 'AGENT_FAILED', true);
      if (!['connection', 'malformed'].includes(String(error.details.reason))) {
        throw new Error(`details.reason is ${String(error.details.reason)}`);
      }
    });
  }

  it('a peer that speaks no TLS is a broken exchange', async () => {
    const url = peer().replace('http:', 'https:');
    reason(
      await fails(
        create({ allow: ['127.0.0.0/8'] }).send({ method: 'GET', url, timeoutMs: 5_000 }),
        'AGENT_FAILED',
        true,
      ),
      'connection',
    );
  });
}
