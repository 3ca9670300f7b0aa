/** The PDF renderer of Chromium, with a real browser. Without one on this computer, the tests are left out, and say so. */

import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { countPages } from '../../src/adapters/pdf/count-pages.ts';
import { type ChromiumPdfOptions, chromiumPdf, type PdfRequest } from '../../src/entries/pdf.ts';
import { INVOICE, REPORT, references, request, startListener } from './documents.ts';
import { readPdf } from './read-pdf.ts';

const PATIENT = 120_000;
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const hasBrowser = BROWSERS.some((path) => existsSync(path));
if (!hasBrowser) console.warn('no Chromium is installed: the tests of chromiumPdf are left out');

const renderer = chromiumPdf();
afterAll(() => renderer.close?.());

/** The processes that this one has started. */
const children = () =>
  execFileSync('ps', ['-o', 'pid=,comm=', '--ppid', String(process.pid)], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => /chrom/.test(line))
    .map((line) => Number.parseInt(line, 10));

async function read(html: string, given: Partial<PdfRequest> = {}) {
  const { content, pages } = await renderer.render(request(html, given));
  const found = await readPdf(content);
  expect([pages, countPages(content)]).toEqual([found.pages.length, found.pages.length]);
  return found;
}

describe.skipIf(!hasBrowser)('chromiumPdf', () => {
  it('renders an invoice on a page of the size that is asked for', { timeout: PATIENT }, async () => {
    const { pages, links, width, height } = await read(INVOICE);
    // Chromium rounds the size of a page to its own pixels.
    expect(Math.abs(width - 595)).toBeLessThan(2);
    expect(Math.abs(height - 842)).toBeLessThan(2);
    expect(pages).toHaveLength(1);
    for (const text of ['Invoice 2026-0042', 'Zażółć Gęślą Jaźń & <Co>', 'Total', '€ 1,200.00'])
      expect(pages[0]).toContain(text);
    expect(pages[0]).not.toContain('not shown');
    expect(links).toEqual(['https://acme.example/terms']);
  });

  it('repeats the header of a table on each page, and numbers the pages', { timeout: PATIENT }, async () => {
    const { pages } = await read(REPORT, { pageNumbers: true });
    expect(pages.length).toBeGreaterThan(1);
    for (const [i, page] of pages.entries()) {
      expect(page).toContain('No Text');
      expect(page).toContain(`${i + 1} / ${pages.length}`);
    }
  });

  it('fetches and reads nothing, runs no script, and stays on its page', { timeout: PATIENT }, async () => {
    const listener = await startListener();
    const secret = join(tmpdir(), `secret-${process.pid}-chromium.png`);
    writeFileSync(secret, 'TOP SECRET');
    try {
      const { pages } = await read(references(listener.origin, secret));
      expect(pages.join(' ')).toContain('kept text');
      expect(pages.join(' ')).not.toMatch(/script ran|TOP SECRET|reached/);
      expect(listener.asked).toEqual([]);
    } finally {
      rmSync(secret);
      await listener.close();
    }
  });

  it('refuses more pages than allowed, and text that only looks like a number of pages', {
    timeout: PATIENT,
  }, async () => {
    const page = '<p lang="/Pages 9 0 R" style="page-break-after:always">/Type /Pages /Count 999</p>';
    expect(
      (await read(`<html lang="/Pages 9 0 R"><title>/Pages 9 0 R</title>${page.repeat(3)}<p>x</p>`)).pages,
    ).toHaveLength(4);
    await expect(renderer.render(request(page.repeat(20), { maxPages: 10 }))).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('pages; the limit is 10'),
    });
  });

  it('ends at the timeout and with its signal, and renders the next document', { timeout: PATIENT }, async () => {
    const slow = `<table>${'<tr><td>x<td>y<td>z<td>w</tr>'.repeat(60_000)}</table>`;
    await expect(renderer.render(request(slow, { timeoutMs: 300 }))).rejects.toMatchObject({
      code: 'TIMEOUT',
      retryable: true,
    });
    const controller = new AbortController();
    const call = renderer.render(request(slow, { signal: controller.signal }));
    const reason = new Error('cancelled');
    setTimeout(() => controller.abort(reason), 100);
    await expect(call).rejects.toBe(reason);
    expect((await read('<p>next</p>')).pages).toEqual(['next']);
  });

  it('a browser that hangs is replaced by the next document, and `close` does not wait for it', {
    timeout: PATIENT,
  }, async () => {
    const own = chromiumPdf();
    const before = children();
    await own.render(request('<p>first</p>'));
    const browsers = children().filter((pid) => !before.includes(pid));
    expect(browsers).not.toEqual([]);
    for (const pid of browsers) process.kill(pid, 'SIGSTOP');
    await expect(own.render({ ...request('<p>hangs</p>'), timeoutMs: 1500 })).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
    expect((await own.render(request('<p>next</p>'))).content.byteLength).toBeGreaterThan(0);
    for (const pid of children().filter((one) => !before.includes(one) && !browsers.includes(one)))
      process.kill(pid, 'SIGSTOP');
    const begun = performance.now();
    await own.close?.();
    expect(performance.now() - begun).toBeLessThan(5000);
    for (const pid of children().filter((one) => !before.includes(one))) process.kill(pid, 'SIGKILL');
  });

  it('starts again after it was closed', { timeout: PATIENT }, async () => {
    await renderer.close?.();
    expect((await read('<p>again</p>')).pages).toEqual(['again']);
  });
});

describe('options of chromiumPdf', () => {
  it('a browser that is missing is NOT_CONFIGURED, and the message says what to install', async () => {
    await expect(
      chromiumPdf({ executablePath: '/nowhere/chromium' }).render(request('<p>x</p>')),
    ).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringMatching(/no file \/nowhere\/chromium.*apt-get install chromium/),
    });
  });

  it.each([
    [{ concurrency: 0 }, '`concurrency` must be'],
    [{ path: '/usr/bin/chromium' }, '`path` is not an option'],
  ])('%o is refused', (options, message) => {
    expect(() => chromiumPdf(options as ChromiumPdfOptions)).toThrow(message);
  });
});
