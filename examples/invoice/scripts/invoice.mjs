import { defineScript } from 'ensemble-orchestrator';
import * as z from 'zod';

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escapeHtml = (text) => text.replace(/[&<>"']/g, (character) => escapes[character]);
const amount = (cents) => `€ ${(cents / 100).toFixed(2)}`;

/** Adds the cents of all lines, and writes each line as a row of the table: its text is escaped, because customers write it. */
export default defineScript({
  input: z.object({ lines: z.array(z.object({ text: z.string(), cents: z.number() })) }),
  output: z.object({ total: z.string(), rows: z.string() }),
  run: ({ input: { lines } }) => ({
    total: amount(lines.reduce((sum, { cents }) => sum + cents, 0)),
    rows: lines
      .map(({ text, cents }) => `<tr><td>${escapeHtml(text)}</td><td class="amount">${amount(cents)}</td></tr>`)
      .join(''),
  }),
});
