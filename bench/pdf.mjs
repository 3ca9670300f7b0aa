/** The time of an invoice of one page by the embedded renderer and by Chromium. Needs a build. `node bench/pdf.mjs [documents]` */
import { chromiumPdf, embeddedPdf } from '../dist/pdf.js';

const count = Number(process.argv[2] ?? 20);
const rows = Array.from({ length: 12 }, (_, i) => `<tr><td>Item ${i}</td><td>${i * 10}.00</td></tr>`).join('');
const html = `<style>td { padding: 4px; border-bottom: 1px solid #ddd }</style><h1>Invoice 42</h1>
<table style="width:100%"><thead><tr><th>Text</th><th>Amount</th></tr></thead><tbody>${rows}</tbody></table><p>Zażółć gęślą jaźń ✓</p>`;
const margin = { top: 42, right: 42, bottom: 42, left: 42 };
const { signal } = new AbortController();
const request = {
  html,
  pageSize: { width: 595, height: 842 },
  margin,
  pageNumbers: true,
  maxPages: 1000,
  timeoutMs: 60_000,
  signal,
};

for (const [name, renderer] of Object.entries({ embeddedPdf: embeddedPdf(), chromiumPdf: chromiumPdf() })) {
  try {
    const times = [];
    for (let i = 0; i <= count; i++) {
      const began = performance.now();
      await renderer.render(request);
      times.push(performance.now() - began);
    }
    const [first, ...others] = times;
    const mean = others.reduce((sum, time) => sum + time, 0) / others.length;
    console.log(`${name}: the first document ${first.toFixed(0)} ms, ${count} others ${mean.toFixed(0)} ms each`);
  } catch (error) {
    console.log(`${name}: ${error.message}`);
  } finally {
    await renderer.close();
  }
}
