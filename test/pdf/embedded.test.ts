/** The embedded PDF renderer: real documents, rendered by its threads and read back. */

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EmbeddedPdfOptions, PdfRenderer, PdfRequest } from '../../src/entries/pdf.ts';
import { buildPdf } from './built-pdf.ts';
import { INVOICE, JPEG, png, REPORT, references, request, startListener } from './documents.ts';
import { readPdf } from './read-pdf.ts';

const PATIENT = 120_000;
const require = createRequire(import.meta.url);

let built: Awaited<ReturnType<typeof buildPdf>>;
let renderer: PdfRenderer;
const open = (options: EmbeddedPdfOptions = {}) => built.library.embeddedPdf(options);

beforeAll(async () => {
  built = await buildPdf();
  renderer = open();
}, PATIENT);
afterAll(async () => {
  await renderer.close?.();
  built.remove();
});

async function read(html: string, given: Partial<PdfRequest> = {}, by = renderer) {
  const { content, pages } = await by.render(request(html, given));
  const found = await readPdf(content);
  expect(pages).toBe(found.pages.length);
  return found;
}

describe('embeddedPdf', () => {
  it('takes an id that is there twice, and one that every object has', { timeout: PATIENT }, async () => {
    const { pages } = await read(
      '<p id="toString">a</p><p id="__proto__">b</p><p id="x">c</p><p id="x">d</p><a href="#x">e</a>',
    );
    expect(pages).toEqual(['a b c d e']);
  });

  it('renders an invoice: table, image, link, entities, and no text of its styles', { timeout: PATIENT }, async () => {
    const { pages, links, width, height, runs } = await read(INVOICE);
    expect([width, height]).toEqual([595, 842]);
    expect(pages).toEqual([
      'Invoice 2026-0042 Bill to: Zażółć Gęślą Jaźń & <Co>, terms Description Qty Amount Consulting 8 960.00 Hosting 1 240.00 Total € 1,200.00 Due in 14 days',
    ]);
    expect(links).toEqual(['https://acme.example/terms']);
    const amount = (text: string) => runs.find((run) => run.text.endsWith(text));
    // Right-aligned amounts end at the same place, left of which the descriptions are.
    expect(amount('960.00')?.x).toBeCloseTo(amount('240.00')?.x as number, 1);
    expect(amount('960.00')?.x).toBeGreaterThan(500);
    expect(amount('Consulting')?.x).toBeLessThan(60);
  });

  it('repeats the header of a table on each page, and numbers the pages', { timeout: PATIENT }, async () => {
    const { pages } = await read(REPORT, { pageNumbers: true });
    expect(pages).toHaveLength(3);
    pages.forEach((page, i) => {
      expect(page).toMatch(i === 0 ? /^Orders No Text 1 Order 1000 / : /^No Text \d+ Order /);
      expect(page).toMatch(new RegExp(`${i + 1} / 3$`));
    });
    const numbers = pages.join(' ').match(/Order \d+/g);
    expect(numbers).toEqual(Array.from({ length: 90 }, (_, i) => `Order ${1000 + i}`));
  });

  it('breaks pages where CSS says so, on pages of the size that is asked for', { timeout: PATIENT }, async () => {
    const html =
      '<p>one</p><p style="page-break-before: always">two</p><p style="break-after: page">three</p><p>four</p>';
    const { pages, width, height } = await read(html, { pageSize: { width: 600, height: 300 } });
    expect([pages, width, height]).toEqual([['one', 'two three', 'four'], 600, 300]);
  });

  it('shows Polish, Greek, Cyrillic, Vietnamese and symbols', { timeout: PATIENT }, async () => {
    const text = 'Zażółć gęślą jaźń Ξεσκεπάζω την ψυχοφθόρα βδελυγμία Съешь ещё этих булок Tiếng Việt € ✓ → ★ ≤';
    const { pages } = await read(`<p>${text} <b>${text}</b> e\u0301</p>`);
    expect(pages[0]?.normalize('NFC').replaceAll(' ', '')).toBe(`${text}${text}é`.replaceAll(' ', ''));
  });

  it('refuses characters that no font has, with their names, or shows what the host chose', {
    timeout: PATIENT,
  }, async () => {
    await expect(read('<p>price 漢 and 👩‍🚀</p>')).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      retryable: false,
      message: expect.stringMatching(/漢 \(U\+6F22\), 👩‍🚀 \(U\+1F469 U\+200D U\+1F680\).*fonts: \{ Name/),
    });
    const replacing = open({ missingCharacter: '?' });
    expect((await read('<p>price 漢!</p>', {}, replacing)).pages).toEqual(['price ?!']);
    await replacing.close?.();
  });

  it('refuses text that is written from right to left, and names a renderer that shows it', {
    timeout: PATIENT,
  }, async () => {
    await expect(read('<p>שלום</p>')).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('chromiumPdf'),
    });
  });

  it('uses fonts of the host, by the name in CSS', { timeout: PATIENT }, async () => {
    const normal = readFileSync(require.resolve('dejavu-fonts-ttf/ttf/DejaVuSerif.ttf'));
    const own = open({ fonts: { 'My Serif': { normal } } });
    const { content } = await own.render(request('<p style="font-family: \'My Serif\', serif">text <b>bold</b></p>'));
    expect(Buffer.from(content).toString('latin1')).toContain('DejaVuSerif');
    await own.close?.();
  });

  it('draws PNG, JPEG and SVG, and refuses other images', { timeout: PATIENT }, async () => {
    const svg =
      '<svg width="90" height="30"><rect width="90" height="30" fill="#ccc"/><text x="5" y="20">drawn ✓</text></svg>';
    const { content } = await renderer.render(request(`<img src="${JPEG}" width="10"><img src="${png(3, 3)}">`));
    expect(
      Buffer.from(content)
        .toString('latin1')
        .match(/\/Subtype \/Image/g),
    ).toHaveLength(2);
    expect((await read(svg)).pages[0]?.replaceAll(' ', '')).toBe('drawn✓');
    await expect(read('<img src="data:image/webp;base64,UklGRg==">')).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('image/webp; use PNG or JPEG'),
    });
    await expect(read('<img src="data:image/png;base64,AAAA">')).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('damaged'),
    });
  });

  it('a PNG whose pixels are cut short or damaged is INVALID_INPUT, and the thread draws the next document', {
    timeout: PATIENT,
  }, async () => {
    const whole = Buffer.from(png(40, 40).split(',')[1] as string, 'base64');
    const idat = whole.indexOf('IDAT') + 4;
    const damaged = Buffer.from(whole);
    damaged.fill(0x55, idat + 4, idat + 12);
    const tooFew = png(4, 4, { width: 4, height: 40 });
    const uri = (bytes: Buffer) => `data:image/png;base64,${bytes.toString('base64')}`;
    for (const src of [uri(damaged), uri(whole.subarray(0, idat + 10)), tooFew]) {
      await expect(read(`<img src="${src}">`)).rejects.toMatchObject({
        code: 'INVALID_INPUT',
        retryable: false,
        message: expect.stringContaining('damaged'),
      });
    }
    expect((await read(`<p>next</p><img src="${png(40, 40)}">`)).pages).toHaveLength(1);
  });

  it('completes tables: short rows, spans beyond the end, rows without a body', { timeout: PATIENT }, async () => {
    const html = `<table><tr><td rowspan="9">a</td><td colspan="100000000">b</td></tr><tr><td>c</td></tr></table>
      <table><tfoot><tr><td>foot</td></tr></tfoot><tr><td>x</td><td>y</td></tr></table><table></table><table><tr></tr></table>`;
    const { pages } = await read(html);
    expect(pages).toEqual(['a b c x y foot']);
  });
});

describe('embeddedPdf, of HTML from strangers', () => {
  it('fetches and reads nothing, and runs no script', { timeout: PATIENT }, async () => {
    const listener = await startListener();
    const secret = join(tmpdir(), `secret-${process.pid}.png`);
    writeFileSync(secret, 'TOP SECRET');
    try {
      const { content } = await renderer.render(request(references(listener.origin, secret)));
      const { pages } = await readPdf(content);
      expect(pages.join(' ')).toBe('kept text the picturea filea path styled s cell item');
      expect(listener.asked).toEqual([]);
      expect(Buffer.from(content).toString('latin1')).not.toContain('TOP SECRET');
    } finally {
      rmSync(secret);
      await listener.close();
    }
  });

  it.each([
    ['more pages than allowed', '<p style="page-break-after:always">x</p>'.repeat(5_000), 'more than 1000 pages'],
    ['very many line breaks in large text', `<div style="font-size:300pt">${'<br>'.repeat(100_000)}</div>`, ''],
    ['very deep nesting', '<div>'.repeat(20_000), 'nested deeper than 200 levels'],
    [
      'an image that claims 900 million pixels',
      `<img src="${png(1, 1, { width: 30_000, height: 30_000 })}">`,
      'pixels',
    ],
  ])('ends %s', { timeout: PATIENT }, async (_what, html, message) => {
    const began = performance.now();
    await expect(renderer.render(request(html, { timeoutMs: 10_000 }))).rejects.toMatchObject({
      code: expect.stringMatching(/INVALID_INPUT|TIMEOUT/),
      message: expect.stringContaining(message),
    });
    expect(performance.now() - began).toBeLessThan(40_000);
  });

  it('ends at the timeout without blocking the host, and renders the next document', { timeout: PATIENT }, async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 20);
    const slow = `<table>${'<tr><td>x<td>y<td>z<td>w</tr>'.repeat(50_000)}</table>`;
    await expect(renderer.render(request(slow, { timeoutMs: 1500 }))).rejects.toMatchObject({
      code: 'TIMEOUT',
      retryable: true,
      details: { timeoutMs: 1500 },
    });
    clearInterval(timer);
    expect(turns).toBeGreaterThan(10);
    expect((await read('<p>next</p>')).pages).toEqual(['next']);
  });

  it('ends a document that needs more memory than allowed', { timeout: PATIENT }, async () => {
    const small = open({ memoryBytes: 64 * 1024 * 1024 });
    const large = `<p>${'<span>x</span> '.repeat(120_000)}</p>`;
    await expect(small.render(request(large))).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('raise `memoryBytes`'),
    });
    await small.close?.();
  });

  it('ends with the reason of its signal, while it works and while it waits', { timeout: PATIENT }, async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error('cancelled');
    const calls = [1, 2].map(() => Promise.resolve(renderer.render(request(REPORT.repeat(20), { signal }))));
    setTimeout(() => controller.abort(reason), 50);
    for (const result of await Promise.allSettled(calls)) expect(result).toMatchObject({ status: 'rejected', reason });
    await expect(renderer.render(request('<p>x</p>', { signal }))).rejects.toBe(reason);
  });
});

describe('options of embeddedPdf', () => {
  it.each([
    [{ threads: 0 }, '`threads` must be'],
    [{ memoryBytes: 1 }, '`memoryBytes` must be'],
    [{ font: {} }, 'did you mean `fonts`?'],
    [{ fonts: { X: { bold: new Uint8Array() } } }, 'font `X` must be'],
    [{ missingCharacter: '漢' }, '`missingCharacter` must be'],
  ])('%o is refused', (options, message) => {
    expect(() => open(options as EmbeddedPdfOptions)).toThrow(message);
  });

  it('without the file of its thread it is NOT_CONFIGURED, with the remedy', { timeout: PATIENT }, async () => {
    rmSync(join(built.folder, 'pdf-thread.js'));
    const other = open();
    await expect(other.render(request('<p>x</p>'))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining('cloudflarePdf()'),
    });
  });
});
