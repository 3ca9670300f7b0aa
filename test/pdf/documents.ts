/** Documents for the tests of the renderers, and the requests for them. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deflateSync } from 'node:zlib';
import type { PdfRequest } from '../../src/entries/pdf.ts';
import { fetchHttp } from '../../src/index.ts';

const MM = 72 / 25.4;
const MARGIN = 15 * MM;

/** A4 with margins of 15 mm. */
export function request(html: string, given: Partial<PdfRequest> = {}): PdfRequest {
  return {
    html,
    pageSize: { width: 210 * MM, height: 297 * MM },
    margin: { top: MARGIN, right: MARGIN, bottom: MARGIN, left: MARGIN },
    pageNumbers: false,
    maxPages: 1000,
    http: fetchHttp({ allow: ['127.0.0.1'] }),
    idempotencyKey: 'key-1',
    timeoutMs: 120_000,
    signal: new AbortController().signal,
    ...given,
  };
}

function crc(bytes: Uint8Array): number {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

function chunk(type: string, data: Uint8Array): Buffer {
  const typed = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc(typed));
  return Buffer.concat([length, typed, sum]);
}

/** A PNG of one colour. @param claimed - the size that its head has, if it lies */
export function png(width: number, height: number, claimed = { width, height }): string {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(claimed.width, 0);
  head.writeUInt32BE(claimed.height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([11, 90, 150]))]);
  const data = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]);
  const file = Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', data), chunk('IEND', Buffer.alloc(0))]);
  return `data:image/png;base64,${file.toString('base64')}`;
}

/** The smallest JPEG: one grey pixel. */
export const JPEG =
  'data:image/jpeg;base64,/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA=';

export const INVOICE = `<!doctype html>
<html><head><title>Invoice</title><style>
  body { font-family: Helvetica, sans-serif; font-size: 10pt }
  table.items { width: 100%; border-collapse: collapse }
  table.items th { text-align: left; background: #eef3f8; border-bottom: 1px solid #0b5a96; padding: 6px }
  table.items td { padding: 6px; border-bottom: 1px solid #ddd }
  .n { text-align: right !important }
  tr.total td { font-weight: bold; border-bottom: none; border-top: 2px solid #222 }
  .hidden { display: none }
</style></head><body>
<p><img src="${png(160, 48)}" width="160" height="48" alt="ACME"></p>
<h1>Invoice 2026-0042</h1>
<p class="hidden">not shown</p>
<p><strong>Bill to:</strong> Zażółć Gęślą Jaźń &amp; &lt;Co&gt;, <a href="https://acme.example/terms">terms</a></p>
<table class="items">
  <thead><tr><th>Description</th><th class="n">Qty</th><th class="n">Amount</th></tr></thead>
  <tbody>
    <tr><td>Consulting</td><td class="n">8</td><td class="n">960.00</td></tr>
    <tr><td>Hosting</td><td class="n">1</td><td class="n">240.00</td></tr>
    <tr class="total"><td colspan="2" class="n">Total</td><td class="n">€ 1,200.00</td></tr>
  </tbody>
</table>
<ul><li>Due in 14 days</li></ul>
</body></html>`;

const lines = Array.from({ length: 90 }, (_, i) => `<tr><td>${i + 1}</td><td>Order ${1000 + i}</td></tr>`).join('');
export const REPORT = `<h1>Orders</h1><table border="1" style="width:100%"><thead><tr><th>No</th><th>Text</th></tr></thead><tbody>${lines}</tbody></table><p>End.</p>`;

export interface Listener {
  readonly origin: string;
  /** The paths that were asked for. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** A server that nobody may call. */
export async function startListener(): Promise<Listener> {
  const asked: string[] = [];
  const server = createServer((incoming, response) => {
    asked.push(incoming.url ?? '');
    response.end('reached');
  });
  server.on('connect', (incoming, socket) => {
    asked.push(`connect ${incoming.url}`);
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** Each way that HTML has to name something outside, with an address of its own. @param secret - a file that must not be read */
export function references(origin: string, secret: string): string {
  return `<html><head>
<base href="${origin}/base/"><link rel="stylesheet" href="${origin}/link.css"><link rel="preconnect" href="${origin}">
<link rel="prefetch" href="${origin}/prefetch"><link rel="icon" href="${origin}/icon"><meta http-equiv="refresh" content="0;url=${origin}/refresh">
<style>@import url("${origin}/import.css"); @import '${origin}/import2.css';
@font-face { font-family: X; src: url(${origin}/font.woff) } body { background: url(${origin}/bg.png); font-family: X }
li { list-style-image: url('${origin}/li.png') } p::before { content: url(${origin}/before.png) }</style>
<script src="${origin}/script.js"></script><script>document.body.textContent = 'script ran'; fetch('${origin}/fetch')</script></head>
<body onload="fetch('${origin}/onload')" background="${origin}/background">
<p>kept text</p><img src="${origin}/img.png" alt="the picture"><img src="file://${secret}" alt="a file"><img src="${secret}" alt="a path"><img src="//169.254.169.254/latest" srcset="${origin}/srcset 2x">
<img src="x" onerror="fetch('${origin}/onerror')"><picture><source srcset="${origin}/source"><img src="${origin}/picture"></picture>
<iframe src="${origin}/iframe"></iframe><iframe src="file://${secret}"></iframe><iframe srcdoc="<img src='${origin}/srcdoc'>"></iframe>
<object data="${origin}/object"></object><embed src="${origin}/embed"><video src="${origin}/video" poster="${origin}/poster"></video>
<input type="image" src="${origin}/input"><div style="background-image:url(${origin}/style)">styled</div>
<svg width="20" height="20"><image href="${origin}/svg.png" width="9" height="9"/><image xlink:href="file://${secret}" width="9" height="9"/>
<image xlink:href="${secret}" width="9" height="9"/><use href="${origin}/use.svg#a"/><style>@import url(${origin}/svg.css);</style>
<text font-family="${secret}" y="9">s</text><rect fill="url(${origin}/paint#a)" width="5" height="5"/><foreignObject><iframe src="${origin}/foreign"></iframe></foreignObject></svg>
<table data-pdfmake="{'image':'${secret}'}"><tr><td data-pdfmake="{'image':'${secret}'}">cell</td></tr></table><ul><li>item</li></ul></body></html>`;
}
