/** Sorts three tickets. A local server stands for the model and for the tool server: see ensemble.config.mjs. */
import { createOrchestrator } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';
import { startLocalServer } from './local-server.mjs';

const TICKETS = [
  { customer: 'ada', text: 'Our shop is offline. Nobody can order.' },
  { customer: 'bob', text: 'I was charged twice. Please check the invoice.' },
  { customer: 'bob', text: 'The app is down on my phone. Is it me?' },
];

const local = await startLocalServer();
process.env.LOCAL_SERVER = local.url;
const orchestrator = createOrchestrator(await loadProject(new URL('.', import.meta.url)));

for (const ticket of TICKETS) {
  const { status, output, error, metrics } = await orchestrator.execute('triage', ticket);
  if (status !== 'completed') {
    console.log(`${ticket.customer}: ${status}: ${error?.message}`);
    process.exitCode = 1;
    continue;
  }
  const { inputTokens, outputTokens } = metrics.usage;
  console.log(`${output.summary} (${ticket.customer}, ${output.plan}) -> ${output.team}, ${output.ticket}`);
  console.log(`  ${metrics.agents} agents, ${inputTokens + outputTokens} tokens`);
}
await orchestrator.close();
await local.close();
