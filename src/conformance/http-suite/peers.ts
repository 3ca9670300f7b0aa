/** HTTP suite: redirects, compression, limits, timeouts, aborts and broken exchanges. */

import { isOrchestratorError } from '../../engine/base/errors.ts';
import type { HttpResponse } from '../../engine/host/http.port.ts';
import { fails, failureOf, type It, reason, refusesCoding, type SuiteContext, same, text } from './context.ts';

export function peerCases({ create, peer, send, ask, waitUntilClosed }: SuiteContext, it: It): void {
  it('returns a redirect as an answer and does not follow it', async () => {
    const before = await ask('/count/redirected');
    const answer = await send('/redirect');
    same(answer.status, 302, 'status');
    if (!answer.headers.location?.endsWith('/redirected')) throw new Error('the location header is missing');
    same(await ask('/count/redirected'), before, 'requests at the target');
  });

  it('decodes a coded body whole, or refuses it: fetch does not read every coding on every runtime', async () => {
    for (const coding of ['gzip', 'deflate', 'br']) {
      const headers = { 'accept-encoding': 'gzip, deflate, br' };
      if (await refusesCoding(send, coding)) {
        reason(await fails(send(`/${coding}`, { headers }), 'AGENT_FAILED', true), 'encoding');
        continue;
      }
      const answer = await send(`/${coding}`, { headers });
      same(text(answer), 'squeezed', `${coding} body`);
      same(answer.headers['content-encoding'], undefined, 'content-encoding of a decoded body');
    }
  });

  it('decodes a gzip body of several members whole, or refuses it (RFC 1952, section 2.2)', async () => {
    const answer = await send('/two-gzips', { headers: { 'accept-encoding': 'gzip' } }).catch(
      (error: unknown) => error,
    );
    if (isOrchestratorError(answer)) reason(answer, 'encoding');
    else same(text(answer as HttpResponse), 'squeezed', 'the body');
  });

  it('refuses a chain of codings and an unknown coding, and never returns undecoded bytes', async () => {
    for (const name of ['encodings', 'zstd']) {
      reason(await fails(send(`/${name}`), 'AGENT_FAILED', true), 'encoding');
      await waitUntilClosed(name);
    }
  });

  for (const path of ['/cut-gzip', '/cut-deflate', '/cut-br', '/cut-chunked', '/short']) {
    it(`fails ${path}, a body that is cut short`, async () => {
      const error = await fails(send(path), 'AGENT_FAILED', true);
      if (!['connection', 'malformed', 'encoding'].includes(String(error.details.reason)))
        throw new Error(`details.reason is ${String(error.details.reason)}`);
    });
  }

  for (const path of ['/cut-gzip', '/cut-chunked', '/short', '/zstd', '/trickle', '/infinite', '/bomb']) {
    it(`with partialBody, ${path} is an answer with its status, what was read, and the failure of its body`, async () => {
      const limits = { timeoutMs: path === '/trickle' ? 300 : 10_000, maxResponseBytes: 1024 };
      const failure = await failureOf(send(path, limits));
      const answer = await send(path, { ...limits, partialBody: true });
      same(answer.status, 200, 'status');
      same(answer.bodyFailure?.message, failure.message, 'the message of bodyFailure');
      same(answer.body.byteLength <= 1024, true, 'at most as many bytes as the limit');
    });
  }

  it('with partialBody, an answer that can be read has its whole body and no failure; an abort and a lost connection reject', async () => {
    const answer = await send('/bytes', { partialBody: true });
    same(answer.body.byteLength, 256, 'bytes');
    same('bodyFailure' in answer, false, 'a failure');
    await fails(send('/reset', { partialBody: true }), 'AGENT_FAILED', true);
    await fails(send('/never', { partialBody: true, timeoutMs: 150 }), 'TIMEOUT', true);
    const controller = new AbortController();
    const aborted = send('/trickle', { partialBody: true, signal: controller.signal });
    setTimeout(() => controller.abort('enough'), 100);
    same(await aborted.catch((thrown: unknown) => thrown), 'enough', 'what an abort rejects with');
  });

  it('counts decoded bytes for the limit, so that a gzip bomb ends there, or refuses the coding', async () => {
    const isRefused = await refusesCoding(send, 'gzip');
    const error = await fails(send('/bomb', { maxResponseBytes: 1024 * 1024 }), 'AGENT_FAILED', isRefused);
    reason(error, isRefused ? 'encoding' : 'too-large');
    await waitUntilClosed('bomb');
  });

  it('ends an endless body at the limit, and closes its socket', async () => {
    reason(await fails(send('/infinite', { maxResponseBytes: 100_000 }), 'AGENT_FAILED', false), 'too-large');
    await waitUntilClosed('infinite');
  });

  it('accepts a body of exactly the limit, and refuses one byte more', async () => {
    same((await send('/bytes', { maxResponseBytes: 256 })).body.byteLength, 256, 'bytes');
    reason(await fails(send('/bytes', { maxResponseBytes: 255 }), 'AGENT_FAILED', false), 'too-large');
  });

  for (const path of ['never', 'trickle']) {
    it(`ends /${path} at the timeout with a retryable TIMEOUT, and closes its socket`, async () => {
      await fails(send(`/${path}`, { timeoutMs: 80 }), 'TIMEOUT', true);
      await waitUntilClosed(path);
    });

    it(`rejects with the reason of the signal on an abort during /${path}, and closes the socket`, async () => {
      const controller = new AbortController();
      const why = new Error('no longer needed');
      const pending = send(`/${path}`, { signal: controller.signal });
      const outcome = pending.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      // The abort comes after the peer has the request, so that there is a socket to close.
      while ((await ask(`/open/${path}`)) === 0);
      controller.abort(why);
      same(await outcome, why, 'reason');
      await waitUntilClosed(path);
    });
  }

  it('sends nothing if the signal is already aborted', async () => {
    const before = await ask('/count/echo');
    const why = new Error('never mind');
    const thrown = await send('/echo', { signal: AbortSignal.abort(why) }).catch((error: unknown) => error);
    same(thrown, why, 'reason');
    same(await ask('/count/echo'), before, 'requests at the peer');
  });

  for (const path of ['reset', 'reset-mid-body', 'short', 'garbage']) {
    it(`reports /${path} as a broken exchange: AGENT_FAILED, retryable`, async () => {
      const error = await fails(send(`/${path}`), 'AGENT_FAILED', true);
      if (!['connection', 'malformed'].includes(String(error.details.reason))) {
        throw new Error(`details.reason is ${String(error.details.reason)}`);
      }
    });
  }

  it('reports a peer without TLS as a broken exchange', async () => {
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
