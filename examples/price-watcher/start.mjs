/** Watches three shops for three days, one after another. The shops are servers that this program starts. */
import { createOrchestrator } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';
import { startShops } from './shop-servers.mjs';

const token = 'token-of-the-west-shop';
const shops = await startShops(token);
const project = await loadProject(new URL('.', import.meta.url), {
  env: { SHOPS_URL: shops.url },
  secrets: { WEST_TOKEN: token },
});
const orchestrator = createOrchestrator(project);

await watch('Monday: all prices are new');

shops.prices.north.desk = 299;
shops.prices.south.shelf = 72.5;
shops.prices.west.chair = 130;
await watch('Tuesday: two prices fell, one rose');

shops.closed.add('south');
shops.prices.south.lamp = 30;
shops.prices.west.lamp = 39;
await watch('Wednesday: a shop is closed, the others are compared');

shops.closed.clear();
await watch('Thursday: the shop is open again, and its last known prices are of Tuesday');

await orchestrator.close();
await shops.close();

async function watch(title) {
  const { status, output, agents, error } = await orchestrator.execute('watch-prices');
  console.log(`\n${title}`);
  for (const shop of Object.keys(shops.prices)) {
    const { output: answer, error: failure } = agents.find(({ name }) => name === shop);
    const read = failure ? reason(failure) : `${answer.body.length} offers in ${answer.pages} pages`;
    console.log(`  ${shop.padEnd(6)} ${read}`);
  }
  console.log(`  => ${status}${error ? `: ${error.message}` : ''}`);
  for (const { shop, sku, from, to } of output?.drops ?? []) console.log(`     ${sku} at ${shop}: ${from} -> ${to}`);
}

function reason({ message }) {
  return message.replace(shops.url, 'SHOPS_URL');
}
