/** Mails an invoice as a PDF. Without an SMTP server in the environment, it sends none, shows the mail, and makes a second one fail. */
import { createOrchestrator, memoryStorage } from 'ensemble-orchestrator';
import { folderObjects, loadProject } from 'ensemble-orchestrator/node';
import { kept } from './ensemble.config.mjs';

const { SMTP_HOST, MAIL_FROM: from, MAIL_TO } = process.env;
if (SMTP_HOST && !(from && MAIL_TO))
  throw new Error('set MAIL_FROM and MAIL_TO: the addresses of the sender and of the recipient');
console.log(kept ? 'memoryMail: no mail leaves this computer' : `smtpMail: ${SMTP_HOST}`);

const [folder] = process.argv.slice(2); // where invoices that were not sent are stored
const objects = folder ? folderObjects(folder) : memoryStorage().objects;
const project = await loadProject(new URL('.', import.meta.url));
const orchestrator = createOrchestrator({ ...project, bindings: { objects }, logger: false });

const lines = [
  { text: 'Consulting, September', cents: 96_000 },
  { text: 'Hosting of the shop, a year', cents: 24_000 },
];
await send({ number: '2026-0042', customer: 'Zażółć & Synowie <Łódź>', email: MAIL_TO ?? 'zofia@example.com', lines });
if (kept) await send({ number: '2026-0043', customer: 'Gone Ltd.', email: 'gone@example.com', lines });
for (const { to, subject, html, attachments } of kept?.messages ?? []) {
  console.log(`\nTo: ${to[0].address}\nSubject: ${subject}\n${html}`);
  for (const { filename, contentType } of attachments) console.log(`[${filename}, ${contentType}]`);
}
await orchestrator.close();

async function send(invoice) {
  const { status, output, error } = await orchestrator.execute('send-invoice', { ...invoice, ...(from && { from }) });
  if (status !== 'completed') throw new Error(error?.message);
  const { pages, total, keptAs, reason } = output;
  const where = keptAs ? `not sent (${reason}), kept as ${keptAs}` : `sent to ${invoice.email}`;
  console.log(`invoice ${invoice.number}, ${total}, ${pages} page: ${where}`);
}
