/** Runs the desk on a manual clock, with a bank whose first answers are lost: three refunds. */
import { memoryMail } from 'ensemble-orchestrator';
import { sqliteDatabase } from 'ensemble-orchestrator/sqlite';
import { createTestOrchestrator, stubHttp } from 'ensemble-orchestrator/testing';
import { createApp, createTable, deskOptions } from './desk.mjs';

const sql = sqliteDatabase({ path: ':memory:' });
await createTable(sql);
const { signal } = new AbortController();
for (const [id, mail, cents] of [
  ['1001', 'ada@mail.example', 1900],
  ['1002', 'bob@mail.example', 90_000],
  ['1003', 'eve@mail.example', 7_500],
])
  await sql.execute(
    { strings: ['INSERT INTO orders (id, mail, cents) VALUES (', ', ', ', ', ')'], values: [id, mail, cents] },
    { signal },
  );

const mail = memoryMail();
const http = stubHttp({
  'POST https://bank.example/refunds': [
    { status: 503 },
    { status: 503 },
    { status: 201, json: { id: 'rf_1' } },
    { status: 201, json: { id: 'rf_2' } },
  ],
});
const orchestrator = createTestOrchestrator({
  ...deskOptions({
    sql,
    mail,
    bankUrl: 'https://bank.example',
    publicUrl: 'https://desk.example',
    linkSecret: 'kept where your other secrets are',
  }),
  http,
});
const app = createApp(orchestrator);
// What `serve` of @hono/node-server passes with each request.
const socket = { incoming: { socket: { remoteAddress: '203.0.113.7' } } };
const ask = (path, init) =>
  app.request(`https://desk.example${path}`, { headers: { cookie: 'session=session-ada' }, ...init }, socket);
/** @returns the id of the execution */
const refund = async (order) =>
  (await ask(`/refunds/${order}`, { method: 'POST' })).headers.get('location').split('/').at(-1);
const linkIn = ({ text }) => /https:\S+/.exec(text)[0];
const decide = (link, decision) =>
  app.request(link, { method: 'POST', body: new URLSearchParams({ decision }) }, socket);
const print = async (order, id) => {
  const { status, output } = await orchestrator.result(id);
  console.log(
    `${order}: ${status}, ${output.status}${output.refund ? ` as ${output.refund}` : ''}${output.by ? `, by ${output.by}` : ''}`,
  );
};

console.log(
  'without a login:',
  (await app.request('https://desk.example/refunds/1001', { method: 'POST' }, socket)).status,
);

const first = await refund('1001');
console.log('pressed twice, one execution:', first === (await refund('1001')));
await print('1001', first);
console.log(
  'asked the bank',
  http.calls.length,
  'times, with',
  new Set(http.calls.map(({ headers }) => headers['Idempotency-Key'])).size,
  'key',
);

const events = await (await ask(`/flows/api/v1/executions/${first}/events`)).text();
console.log(
  'events of the browser:',
  [...events.matchAll(/^event: (agent\.completed|execution\.completed)$/gm)].length,
);

const second = await refund('1002');
await orchestrator.clock.advance(25 * 3_600_000);
const links = mail.messages.filter(({ subject }) => subject.includes('1002')).map(linkIn);
console.log('the clerk, too late:', (await decide(links[0], 'pay')).status);
console.log('the lead:', (await decide(links[1], 'pay')).status);
await print('1002', second);

const third = await refund('1003');
await orchestrator.clock.advance(1_000);
await decide(linkIn(mail.messages.at(-1)), 'refuse');
await print('1003', third);

const page = await ask(`/refunds/${third}`);
console.log('its page:', page.status, (await page.text()).includes('<p id="status">completed</p>'));
console.log(
  'mails to customers:',
  mail.messages
    .filter(({ subject }) => subject.startsWith('Your order'))
    .map(({ to: [{ address }] }) => address)
    .join(', '),
);
await orchestrator.close();
sql.close();
