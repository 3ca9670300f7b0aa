/** Sends one issue of the newsletter, and shows the mails. */
import { createOrchestrator } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';
import { mail } from './ensemble.config.mjs';

const orchestrator = createOrchestrator(await loadProject(new URL('.', import.meta.url)));
orchestrator.on('send.completed', ({ data }) => console.log(`${data.isError ? 'failed' : 'sent'}  ${data.to}`));

const issue = { title: 'the shop has tea', story: 'Black & green.', editor: 'editor@acme.example' };
const { status, output, error } = await orchestrator.execute('newsletter', { issue });
if (status !== 'completed') throw new Error(error?.message);

console.log(`\n${output.sent} sent, ${output.failed} failed`);
for (const { email, message } of output.unreached) console.log(`  ${email}: ${message}`);
for (const { to, subject, html, headers } of mail.messages) {
  console.log(`\nTo: ${to[0].address}\nSubject: ${subject}`);
  if (headers['List-Unsubscribe']) console.log(`List-Unsubscribe: ${headers['List-Unsubscribe']}`);
  if (html) console.log(html.trim());
}
await orchestrator.close();
