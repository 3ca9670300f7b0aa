/** Renders documents with `embeddedPdf` on Deno and Bun: one that is printed as JSON, one that is refused, and one whose time ends. */

import { createOrchestrator } from 'ensemble-orchestrator';
import { embeddedPdf } from 'ensemble-orchestrator/pdf';

const orchestrator = createOrchestrator({
  pdf: embeddedPdf(),
  ensembles: [
    `
name: print
flow:
  - agent: pdf
    operation: pdf
    input: { name: '\${input.name}', rows: '\${input.rows}' }
    config:
      timeout: \${input.timeout ?? '60s'}
      pageNumbers: true
      html: '<h1>Invoice for {{ name }}</h1><table>\${input.rows}</table>'
outputs:
  pdf: \${pdf.output}
`,
  ],
});

const row = '<tr><td>Lamp ✓</td><td>40 €</td></tr>';
const printed = await orchestrator.execute('print', { name: 'Zażółć & <Łódź>', rows: row });
const refused = await orchestrator.execute('print', { name: '請求書', rows: row });
const late = await orchestrator.execute('print', { name: 'Ada', rows: row.repeat(20_000), timeout: '50ms' });
const next = await orchestrator.execute('print', { name: 'Bob', rows: row });
await orchestrator.close();
console.log(
  JSON.stringify({
    pdf: printed.output?.pdf ?? printed.error,
    codes: [refused, late, next].map(({ status, error }) => error?.code ?? status),
  }),
);
