/** HTTP suite: a caller that reads the body as it comes. */

import type { HttpHead } from '../../engine/host/http.port.ts';
import { fails, type It, reason, refusesCoding, type SuiteContext, same, text } from './context.ts';

export function chunkCases({ send, waitUntilClosed }: SuiteContext, it: It): void {
  it('passes the parts of a body to onChunk before its end; what onChunk throws is what send rejects with, and the socket is closed', async () => {
    const why = new Error('seen enough');
    let received = '';
    const pending = send('/trickle', {
      onChunk(chunk) {
        received += new TextDecoder().decode(chunk);
        if (received.length >= 3) throw why;
      },
    });
    same(await pending.catch((thrown: unknown) => thrown), why, 'what send rejects with');
    if (received.length < 3) throw new Error(`received ${received.length} bytes`);
    await waitUntilClosed('trickle');
  });

  it('passes decoded parts with status and headers, also for an error status, and returns the whole body too', async () => {
    const expected: [string, number, string][] = [
      ['/status/503', 503, 'status 503'],
      ['/echo', 200, ''],
    ];
    for (const coding of ['gzip', 'br'])
      if (!(await refusesCoding(send, coding))) expected.push([`/${coding}`, 200, 'squeezed']);
    for (const [path, status, body] of expected) {
      const parts: string[] = [];
      let head: HttpHead | undefined;
      const answer = await send(path, {
        onChunk(chunk, begin) {
          parts.push(new TextDecoder().decode(chunk));
          head = begin;
        },
      });
      same(parts.join(''), body || text(answer), `parts of ${path}`);
      same(text(answer), body || text(answer), `body of ${path}`);
      same(head?.status, status, `status of ${path}`);
      same(head?.headers['content-encoding'], undefined, `content-encoding of ${path}`);
      same(head?.headers['x-one'], answer.headers['x-one'], `header of ${path}`);
    }
  });

  it('calls no onChunk for an empty body', async () => {
    let calls = 0;
    await send('/status/204', { onChunk: () => void calls++ });
    await send('/echo', { method: 'HEAD', onChunk: () => void calls++ });
    same(calls, 0, 'calls');
  });

  it('passes no more than the limit, decoded', async () => {
    const bomb = (await refusesCoding(send, 'gzip')) ? [] : ['bomb'];
    for (const path of ['infinite', ...bomb]) {
      let size = 0;
      const onChunk = (chunk: Uint8Array) => {
        size += chunk.byteLength;
      };
      const error = await fails(send(`/${path}`, { maxResponseBytes: 300_000, onChunk }), 'AGENT_FAILED', false);
      reason(error, 'too-large');
      if (size > 300_000) throw new Error(`onChunk received ${size} bytes of /${path}; the limit is 300000`);
    }
  });

  for (const path of ['infinite', 'bomb']) {
    it(`passes nothing of /${path} to onChunk any more when send has rejected`, async () => {
      if (path === 'bomb' && (await refusesCoding(send, 'gzip'))) return;
      const controller = new AbortController();
      const why = new Error('no longer needed');
      let calls = 0;
      const onChunk = () => {
        calls++;
        controller.abort(why);
      };
      const thrown = await send(`/${path}`, { signal: controller.signal, onChunk }).catch((error: unknown) => error);
      same(thrown, why, 'what send rejects with');
      await waitUntilClosed(path);
      same(calls, 1, 'calls');
    });
  }
}
