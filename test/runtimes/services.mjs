/** Mails, text messages and stored data of the smoke test. The mail and message services are in memory, and speak the wire formats of Resend and Twilio. */

import { createOrchestrator, memoryMail, thirdpartyMail, verifySignature } from 'ensemble-orchestrator';
import { twilioSms } from 'ensemble-orchestrator/twilio';

const NOTIFY = `
name: notify
notifications:
  - { type: webhook, url: 'https://hooks.example/in', secret: [\${env.NEW}, \${env.OLD}], events: [execution.completed, agent.completed] }
  - { type: email, to: [ops@example.com], provider: memory, from: acme@example.com, subject: '\${event} of \${ensemble.name} in \${env.STAGE}', events: [execution.completed] }
flow:
  - agent: remember
    operation: storage
    config: { type: kv, action: put, key: 'orders/\${input.id}', value: { city: '\${input.city}', total: '\${input.total}' } }
  - agent: rows
    operation: storage
    config:
      type: kv
      action: export
      prefix: orders/
      format: csv
      exportOptions: { to: { key: orders.csv } }
  - agent: csv
    operation: storage
    config: { type: objects, action: get, key: orders.csv }
  - agent: mail
    operation: email
    config:
      provider: thirdparty
      from: Acme <orders@acme.example>
      to: \${input.email}
      subject: 'Order {{ id }} to {{ upper(city) }}'
      body: 'Total {{ total }}'
      html: '<p>{{ city }}: {{ total }}</p>'
      attachments: [{ filename: orders.csv, content: '\${csv.output}' }]
  - agent: batch
    operation: email
    config:
      provider: memory
      from: orders@acme.example
      subject: 'Hello {{ name }}'
      body: 'For {{ name }} only'
      batch: { recipients: [{ email: ada@example.com, name: Ada }, { email: 'a@b, c@d', name: Two }] }
  - agent: text
    operation: sms
    config: { to: \${input.phone}, body: 'Order {{ id }} goes to {{ city }}' }
outputs:
  csv: \${csv.output.content}
  contentType: \${csv.output.contentType}
  mail: \${mail.output}
  batch: \${{ sent: batch.output.sent, failed: batch.output.failed }}
  text: \${text.output}
`;

/** The services behind Resend's and Twilio's APIs. Each request is added to `seen`. */
function services(seen) {
  const answer = (status, body) => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify(body)),
  });
  return {
    async send({ method, url, headers, body }) {
      const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
      if (url.startsWith('https://hooks.example')) return receive(headers, text, answer);
      const { authorization } = Object.fromEntries(Object.entries(headers).map(([k, v]) => [k.toLowerCase(), v]));
      const isMail = new URL(url).hostname === 'api.resend.com';
      const sent = isMail ? JSON.parse(text) : Object.fromEntries(new URLSearchParams(text));
      // The Message-ID is derived from the id of the execution.
      delete sent.headers;
      seen.push({ method, url, authorization, sent });
      return isMail ? answer(200, { id: 're_1' }) : answer(201, { sid: 'SM1', status: 'queued' });
    },
  };
}

export const received = [];

/** The receiver of the webhooks: it is out of order at the first attempt of the event that ends the execution. */
async function receive(headers, body, answer) {
  const { event, data } = JSON.parse(body);
  const attempt = new Headers(headers).get('x-service-delivery-attempt');
  const isSigned = await verifySignature({ secret: 'old-secret', headers, body });
  const isForged = await verifySignature({ secret: 'old-secret', headers, body: `${body} ` });
  received.push(`${event} ${data.agent ?? ''} ${attempt} ${isSigned} ${isForged}`);
  return answer(event === 'execution.completed' && attempt === '1' ? 503 : 200, {});
}

export const requests = [];
export const mailbox = memoryMail();

/** Created at module level, where a Worker allows no I/O. */
export const notifying = createOrchestrator({
  ensembles: [NOTIFY],
  mail: { thirdparty: thirdpartyMail({ apiKey: 're_secret_key' }), memory: mailbox },
  sms: {
    twilio: twilioSms({ accountSid: `AC${'0'.repeat(32)}`, authToken: 'token-of-the-account', from: '+15005550006' }),
  },
  http: services(requests),
  secrets: { NEW: 'new-secret', OLD: 'old-secret' },
  env: { STAGE: 'prod' },
});

/** Sends until each delivery has ended: the first attempt of one is refused, and repeated after a second. */
async function delivered() {
  for (let turns = 0; turns < 50; turns += 1) {
    await notifying.deliveries.deliverDue();
    const { deliveries } = await notifying.deliveries.list();
    if (deliveries.every(({ status }) => status === 'succeeded')) {
      return deliveries
        .map(({ type, event, attempts }) => `${type} ${event} ${attempts.map((a) => a.status ?? a.error?.code)}`)
        .sort();
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return 'not all were delivered';
}

/** The text of a mail. Of the data of an event: its keys, because its id and its duration differ. */
function shown(text) {
  return text.startsWith('{') ? Object.keys(JSON.parse(text)) : text;
}

export async function notify() {
  const run = await notifying.execute('notify', {
    ...{ id: 7, city: "L'Aquila & <Żory>", total: 12.5, email: 'ada@example.com', phone: '+48123456789' },
  });
  const deliveries = await delivered();
  await notifying.close();
  return {
    status: run.status,
    error: run.error ?? null,
    output: run.output,
    requests,
    deliveries,
    received: received.sort(),
    mailbox: mailbox.messages.map(({ to, subject, text }) => [to[0].address, subject, shown(text)]),
  };
}
