import { readdir, readFile } from 'node:fs/promises';
import { createOrchestrator, isOrchestratorError } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';
import { startShop } from './shop-server.mjs';

const shop = await startShop();
// The whole library, in two lines: read a project folder, run one of its ensembles.
const project = await loadProject(new URL('.', import.meta.url), { env: { SHOP_URL: shop.url } });
const orchestrator = createOrchestrator(project);

console.log(`order intake: a customer service and a warehouse listen on ${shop.url}`);
report(orchestrator);

const orders = new URL('orders/', import.meta.url);
for (const file of (await readdir(orders)).sort()) {
  const order = JSON.parse(await readFile(new URL(file, orders), 'utf8'));
  console.log(`\norders/${file}`);
  try {
    const run = await orchestrator.execute('order-intake', order);
    if (run.status !== 'completed') {
      console.log(line('=>', run.status, run.duration, run.error?.message));
      process.exitCode = 1;
      continue;
    }
    console.log(line('=>', run.output.decision, run.duration, `${run.metrics.agents} agents ran`));
    for (const [name, value] of Object.entries(run.output))
      if (value !== null) console.log(`     ${name.padEnd(12)} ${value}`);
  } catch (error) {
    // An input that doesn't fit is refused before anything runs.
    if (!isOrchestratorError(error, 'INVALID_INPUT')) throw error;
    console.log(line('=>', 'refused', undefined, error.message));
  }
}

await orchestrator.close();
await shop.close();
if (!process.argv.includes('--once'))
  console.log('\nAll orders ran once; this version has no service that would go on listening.');

/** Prints every agent as it goes. */
function report(orchestrator) {
  orchestrator.on('agent.completed', ({ data }) => console.log(line(data.agent, 'ok', data.duration)));
  orchestrator.on('agent.failed', ({ data }) =>
    console.log(line(data.agent, 'failed', data.duration, data.error.message)),
  );
  orchestrator.on('agent.skipped', ({ data }) => console.log(line(data.agent, 'skipped')));
  orchestrator.on('agent.retrying', ({ data, timestamp }) => {
    const wait = data.retryAt - Date.parse(timestamp);
    console.log(
      line(data.agent, 'retry', undefined, `attempt ${data.attempt}: ${data.error.message}; again in ${wait} ms`),
    );
  });
}

function line(name, what, ms, more = '') {
  const time = ms === undefined ? '' : `${ms} ms`;
  return `  ${name.padEnd(10)} ${what.padEnd(9)} ${time.padStart(7)}  ${more}`.trimEnd();
}
