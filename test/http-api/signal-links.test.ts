/** The pages of a link of `signalUrl()`: opening one changes nothing, its button sends the signal, and no token is needed. See decision 17. */

import { beforeEach, describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { createHandler } from '../../src/http-handlers/create-handler.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';
import { type Ask, HOSTS } from './hosts.ts';
import { createService, post, readResponse, type Service } from './service.ts';

const signalLinks = { url: 'https://flows.example/service', secret: 'a secret that nobody can guess, 1' };
const CODE = { operation: 'code', config: { script: 'mail' } };
const ENSEMBLES = [
  {
    name: 'ask',
    flow: [
      {
        agent: 'mail',
        ...CODE,
        input: {
          yes: "${signalUrl('go', { answer: 'yes', note: input.note })}",
          no: "${signalUrl('go', { answer: 'no' })}",
          bare: "${signalUrl('other')}",
        },
      },
      { wait: 'go', name: 'answered' },
      { wait: 'later' },
      { if: false, then: [{ wait: 'other' }] },
    ],
  },
];
const FORM = '<form method="post"><button type="submit">Confirm</button></form>';

interface Page {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

describe.each(HOSTS)('signal links by $host', ({ open }) => {
  let service: Service;
  let ask: Ask;
  let id: string;
  let links: { readonly yes: string; readonly no: string; readonly bare: string };
  let reads: number;
  let broken: boolean;

  beforeEach(async () => {
    reads = 0;
    broken = false;
    const storage = memoryStorage();
    const watched = changeStorage(storage, {
      signals: {
        find(...given) {
          reads += 1;
          if (broken) throw new Error('the disk is gone');
          return storage.signals.find(...given);
        },
      },
    });
    const scripts = {
      mail: ({ input }: { input: unknown }) => {
        links = input as typeof links;
        return null;
      },
    };
    service = createService({ basePath: '/service' }, { ensembles: ENSEMBLES, signalLinks, storage: watched, scripts });
    ask = await open(service.handler);
    const run = await service.orchestrator.start('ask', { note: `<script>"&'</script>` });
    id = run.id;
    await service.clock.advance(0);
  });

  /** Requests the path of a link. The public address ends where the handler is mounted. */
  const call = async (link: string, init?: RequestInit): Promise<Page> => {
    const response = await ask(new URL(link).pathname, init);
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  const signals = async () => {
    await service.clock.advance(0);
    const { status, agents } = await service.orchestrator.executions.get(id);
    const found = await service.orchestrator.signalLinks?.read(links.yes.split('/').at(-1) ?? '');
    return { status, agents: agents?.length, link: found?.state };
  };

  it('GET shows the signal and its payload, escaped, in a page without anything else', async () => {
    const { status, text, headers } = await call(links.yes);
    expect(status).toBe(200);
    expect(text).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(text).toContain('<title>Please confirm</title>');
    expect(text).toContain('<main><h1>Please confirm</h1><p><strong>go</strong></p>');
    expect(text).toContain(FORM);
    expect(text).toContain('&#34;answer&#34;: &#34;yes&#34;');
    expect(text).toContain('&#60;script&#62;\\&#34;&#38;&#39;&#60;/script&#62;');
    expect(text).not.toMatch(/<script|exec_|style|https?:|flow\[/);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex, nofollow',
      'referrer-policy': 'no-referrer',
      'content-security-policy': "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    });
    expect((await call(links.bare)).text).not.toContain('<pre>');
  });

  it.each([
    ['a right-to-left override', 'no\u202eyes', 'no\\u{202e}yes'],
    ['an isolate', '\u2066a\u2069', '\\u{2066}a\\u{2069}'],
    ['direction marks', '\u200f\u061c', '\\u{200f}\\u{61c}'],
    ['characters without width', 'a\u200bb\ufeffc\u00add', 'a\\u{200b}b\\u{feff}c\\u{ad}d'],
    ['a tag', '\u{e0041}', '\\u{e0041}'],
    ['line separators', 'a\u2028b\u2029c\u0085', 'a\\u{2028}b\\u{2029}c\\u{85}'],
    ['control characters', '\u009b\u007f', '\\u{9b}\\u{7f}'],
  ])('shows %s of the payload as an escape, so that no text is hidden or moved', async (_what, note, seen) => {
    await service.orchestrator.start('ask', { note });
    await service.clock.advance(0);
    const { text } = await call(links.yes);
    expect(text).toContain(`&#34;note&#34;: &#34;${seen}&#34;`);
    expect(text).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}]/u);
  });

  it('shows letters of every script, and emoji, as they are', async () => {
    const note = 'Zoë, żółw, 漢字, שלום, سلام, 🐢';
    await service.orchestrator.start('ask', { note });
    await service.clock.advance(0);
    expect((await call(links.yes)).text).toContain(note);
  });

  it('a mail scanner triggers nothing, however often it opens a link', async () => {
    for (let i = 0; i < 3; i++) {
      expect((await call(links.yes)).status).toBe(200);
      const head = await call(links.no, { method: 'HEAD' });
      expect([head.status, head.text, head.headers.get('content-type')]).toEqual([200, '', 'text/html; charset=utf-8']);
      expect((await call(links.no, { method: 'OPTIONS' })).headers.get('allow')).toBe('GET, HEAD, POST, OPTIONS');
      expect((await call(links.no, { method: 'DELETE' })).status).toBe(405);
    }
    expect(await signals()).toEqual({ status: 'waiting', agents: 1, link: 'open' });
  });

  it('POST sends the signal once, with any body or none', async () => {
    const given = await call(links.no, { method: 'POST' });
    expect([given.status, given.text]).toEqual([200, expect.stringContaining('<h1>Thank you</h1>')]);
    expect(given.text).not.toContain('<form');
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    for (const init of [{ method: 'POST' }, { method: 'POST', headers: form, body: 'a=1' }, post('{ broken')]) {
      for (const link of [links.no, links.yes]) {
        const again = await call(link, init);
        expect([again.status, again.text]).toEqual([409, expect.stringContaining('<h1>Already answered</h1>')]);
      }
    }
    expect((await call(links.yes)).status).toBe(409);
    await service.orchestrator.executions.signal(id, 'later');
    expect((await signals()).status).toBe('completed');
    expect((await call(links.no)).status).toBe(409);
  });

  it('POST with the body of a form sends the signal too', async () => {
    const body = new URLSearchParams({ a: '1' });
    expect((await call(links.yes, { method: 'POST', body })).status).toBe(200);
    expect((await signals()).link).toBe('answered');
  });

  it('the pages of a link that is over and of an unknown link show only that', async () => {
    await service.orchestrator.executions.cancel(id);
    await service.clock.advance(0);
    for (const method of ['GET', 'POST']) {
      const over = await call(links.yes, { method });
      expect([over.status, over.text]).toEqual([410, expect.stringContaining('<h1>Too late</h1>')]);
      const changed = await call(`${links.yes.slice(0, -2)}zz`, { method });
      expect([changed.status, changed.text]).toEqual([404, expect.stringContaining('<h1>No such link</h1>')]);
      for (const { text, headers } of [over, changed]) {
        expect(text).not.toMatch(/<form|answer&#|<strong>|exec_|cancelled/);
        expect(headers.get('content-security-policy')).toContain("default-src 'none'");
      }
    }
  });

  it('an unknown link causes no read of the storage', async () => {
    reads = 0;
    for (const token of ['x', '%00', `${'a'.repeat(3000)}.${'0'.repeat(64)}`, 'a%2Fb', '..%2F']) {
      expect((await call(`https://flows.example/service/signals/${token}`)).status).toBe(404);
    }
    expect(reads).toBe(0);
  });

  it('a failure is logged without the link', async () => {
    broken = true;
    const { status, text } = await call(links.yes, { method: 'POST' });
    expect(status).toBe(500);
    expect(text).not.toContain('disk');
    expect(service.log).toHaveLength(1);
    expect(service.log[0]?.fields).toMatchObject({ method: 'POST', path: '/service/signals/***' });
    expect(JSON.stringify(service.log)).not.toContain(links.yes.slice(-20));
  });

  it('a link is not a token: it opens only its own page', async () => {
    const authorization = `Bearer ${links.yes.split('/').at(-1)}`;
    const response = await readResponse(ask(`/service/api/v1/executions/${id}`, { headers: { authorization } }));
    expect(response.status).toBe(401);
  });

  it('without the option, the path is left to the host', async () => {
    const plain = createService();
    const path = new URL(links.yes).pathname.replace('/service', '');
    const { handler, orchestrator } = plain;
    expect(await handler.handle(new Request(`http://service.test${path}`))).toEqual({ matched: false });
    const call = await open(createHandler(orchestrator));
    expect((await readResponse(call(path))).body).toMatchObject({ error: { code: 'NOT_FOUND' } });
    const other = createService({}, { signalLinks }).handler;
    expect(await other.handle(new Request(`http://service.test${path}`))).toMatchObject({ matched: true });
  });
});
