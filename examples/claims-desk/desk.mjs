/** The claims desk: what its orchestrator has, in the app and in its tests. */
import { readFileSync } from 'node:fs';
import { createHandler, defineScript } from 'ensemble-orchestrator';
import { openTelemetry } from 'ensemble-orchestrator/otel';
import * as z from 'zod';

/** @param parts - what differs between the app and its tests: `sql`, `mail`, `model`, `pdf`, `secrets`, and options to add */
export function deskOptions({ sql, mail, model, pdf, secrets, linkSecret, ...more }) {
  return {
    ensembles: [readFileSync(new URL('ensembles/claim.yaml', import.meta.url), 'utf8')],
    scripts: { accept: defineScript({ input: z.number(), output: z.number(), run: ({ input }) => input }) },
    bindings: { sql },
    mail: { desk: mail },
    models: { desk: model },
    pdf,
    secrets,
    env: { BANK_URL: 'https://bank.example', PARTNER_URL: 'https://partner.example' },
    signalLinks: { url: 'https://claims.example/flows', secret: linkSecret },
    // Does nothing until an SDK of OpenTelemetry is registered.
    telemetry: openTelemetry(),
    ...more,
  };
}

/** At each start: the table, and the prompt that the ensemble asks for. */
export async function prepare(orchestrator, sql) {
  const { signal } = new AbortController();
  const text = 'CREATE TABLE IF NOT EXISTS policies (id TEXT PRIMARY KEY, name TEXT, mail TEXT, iban TEXT)';
  await sql.execute({ strings: [text], values: [] }, { signal });
  await orchestrator.components.ensure([
    {
      name: 'classify',
      kind: 'prompt',
      metadata: { model: 'small', variables: ['text'] },
      content: 'What kind of damage is this, and what does it cost? {{ text }}',
      to: 'production',
    },
  ]);
  await orchestrator.ready();
}

/** The webhook, the pages of links, the API and the dashboard, below /flows. */
export function flowsOf(orchestrator) {
  return createHandler(orchestrator, { basePath: '/flows', dashboard: true });
}
