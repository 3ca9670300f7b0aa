/** Runs the desk on a manual clock: `start.mjs [hono | express]`. With DATABASE_URL, its executions are in Postgres. */
import { createHmac } from 'node:crypto';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { memoryMail, memoryStorage, verifySignature } from 'ensemble-orchestrator';
import { postgresStorage } from 'ensemble-orchestrator/postgres';
import { sqliteDatabase } from 'ensemble-orchestrator/sqlite';
import { createTestOrchestrator, fakeModel, stubHttp, stubPdf } from 'ensemble-orchestrator/testing';
import { deskOptions, prepare } from './desk.mjs';

const [, , framework = 'hono'] = process.argv;
const spans = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).register();

const secrets = { INTAKE_SECRET: 'whsec_of_the_intake', PARTNER_SECRET: 'a long random text' };
const sql = sqliteDatabase({ path: ':memory:' });
const mail = memoryMail();
const pdf = stubPdf();
const says = (kind, cents) => ({ object: { kind, cents } });
const model = fakeModel([says('glass', 32_000), says('water', 910_000), says('other', 0), says('glass', 8_000)]);
const bank = [{ status: 503 }, { status: 503 }, ...[1, 2, 3].map((n) => ({ status: 201, json: { id: `pay_${n}` } }))];
const told = [];
const partner = async ({ headers, body }) => {
  const now = orchestrator.clock.now();
  told.push(await verifySignature({ secret: secrets.PARTNER_SECRET, headers, body, now }));
  return { status: 204 };
};
const http = stubHttp({ 'POST https://bank.example/payments': bank, 'POST https://partner.example/hooks': partner });
const url = process.env.DATABASE_URL;
const storage = url ? postgresStorage({ url }) : memoryStorage();

const linkSecret = 'kept where your other secrets are';
const orchestrator = createTestOrchestrator({
  ...deskOptions({ sql, mail, model, pdf, secrets, linkSecret, http, storage }),
});
await prepare(orchestrator, sql);
await prepare(orchestrator, sql); // the second start of the app changes nothing
const { signal } = new AbortController();
const ada = ['INSERT INTO policies VALUES (', ', ', ', ', ', ', ')'];
await sql.execute({ strings: ada, values: ['P-1', 'Ada', 'ada@mail.example', 'CH93'] }, { signal });
const { listen } = await import(framework === 'express' ? './serve-express.mjs' : './serve-hono.mjs');
const app = await listen(orchestrator, 0);

/** Sends a claim as the intake does. @returns the response */
const send = (claim, secret = secrets.INTAKE_SECRET) => {
  const body = JSON.stringify({ claim, policy: 'P-1', text: `the text of ${claim}` });
  const t = Math.floor(orchestrator.clock.now() / 1000);
  const v1 = createHmac('sha256', secret).update(`${t}.${body}`).digest('hex');
  const headers = { 'content-type': 'application/json', 'stripe-signature': `t=${t},v1=${v1}` };
  return fetch(`${app.url}/flows/webhooks/claims`, { method: 'POST', headers, body });
};
const started = async (claim) => (await (await send(claim)).json()).executionId;
const show = async (id) => {
  const { status, output, components = [] } = await orchestrator.result(id);
  const prompt = components.map(({ version }) => version).join();
  console.log(
    `${status}: ${output.status}, ${output.cents} cents, ${output.payment ?? 'no payment'}, prompt ${prompt}`,
  );
};
/** Waits until the clerk has the mail. */
const asked = async (id) => {
  while ((await orchestrator.executions.status(id)).status !== 'waiting') await orchestrator.clock.advance(0);
};
/** Fills in the form of the last link that was mailed. */
const decide = async (fields) => {
  const { text } = mail.messages.at(-1);
  const link = /https:\S+/.exec(text)[0].replace('https://claims.example', app.url);
  const page = await (await fetch(link)).text();
  const { status } = await fetch(link, { method: 'POST', body: new URLSearchParams(fields) });
  return `${page.includes('Cents to pay') ? 'a form' : 'no form'}, ${status}`;
};

console.log(`the app: ${await (await fetch(app.url)).text()}`);
console.log(`a wrong signature: ${(await send('C-0', 'another secret')).status}`);

await show(await started('C-1'));
const payments = http.calls.filter(({ url }) => url.startsWith('https://bank.example'));
const keys = new Set(payments.map(({ headers }) => headers['Idempotency-Key']));
console.log(`asked the bank ${payments.length} times, with ${keys.size} key`);
console.log(
  `letter: ${pdf.documents[0].html.includes('pay_1')}, attached: ${mail.messages[0].attachments[0].filename}`,
);

const second = await started('C-2');
await asked(second);
console.log(`the clerk: ${await decide({ cents: '500000' })}`);
await show(second);

// A new prompt is worse, and is rolled back.
const { components } = orchestrator;
await components.createVersion('classify', { version: 'v1.1.0', content: 'Classify: {{ text }}' });
await components.deploy('classify', { to: 'production', version: 'v1.1.0' });
const third = await started('C-3');
await asked(third);
await components.rollback('classify', { to: 'production', from: 'v1.1.0' });
console.log(`the clerk: ${await decide({ cents: '0' })}`);
await show(third);
await show(await started('C-4'));

await orchestrator.deliveries.deliverDue();
console.log(`told the partner: ${told.length} times, ${told.every(Boolean) ? 'signed' : 'not signed'}`);
const page = await fetch(`${app.url}/flows/`, { headers: { accept: 'text/html' } });
console.log(`dashboard: ${page.status} at ${new URL(page.url).pathname}`);
const names = spans.getFinishedSpans().map(({ name }) => name);
console.log(
  `traces: ${names.filter((name) => name === 'agent pay').length} attempts to pay in ${names.filter((name) => name === 'create claim').length} claims`,
);
app.close();
await orchestrator.close();
await sql.close();
