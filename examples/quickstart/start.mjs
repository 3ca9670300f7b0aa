import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { createHandler, createOrchestrator, isOrchestratorError } from 'ensemble-orchestrator';
import { loadProject, toNodeListener } from 'ensemble-orchestrator/node';
import { sqliteStorage } from 'ensemble-orchestrator/sqlite';
import { listenFrom } from './listen-from.mjs';
import { line, printAgents, printOutput } from './print-run.mjs';
import { startShop } from './shop-server.mjs';

const here = new URL('.', import.meta.url);
const shop = await startShop();

// Executions are stored in one SQLite file. The .gitignore keeps it out of the repository.
await mkdir(new URL('.ensemble/', here), { recursive: true });
await writeFile(new URL('.ensemble/.gitignore', here), '*\n');
const path = fileURLToPath(new URL('.ensemble/quickstart.sqlite', here));

// Loads the project folder, and creates an orchestrator that runs its ensembles.
const project = await loadProject(here, { env: { SHOP_URL: shop.url }, storage: sqliteStorage({ path }) });
// Without `logger: false`, the console shows warnings too, such as each attempt that fails.
const orchestrator = createOrchestrator({ ...project, logger: false });

console.log(`order intake: a customer service and a warehouse listen on ${shop.url}`);
printAgents(orchestrator);
await runOrders();

// Serves the same ensembles over HTTP. `createHandler` works with any other server too.
const { server, url } = await listenFrom(3000, toNodeListener(createHandler(orchestrator, { dashboard: true })));
const { token, expiresAt } = await createToken();
const body = JSON.stringify({
  input: { order: '1004', customer: 'ada', lines: [{ sku: 'chair-02', quantity: 2 }], express: true },
});
const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
const isOnce = process.argv.includes('--once');
if (!isOnce) printHowToCall();
await callOnce();

const stop = new Promise((resolve) => {
  process.once('SIGINT', resolve);
  process.once('SIGTERM', resolve);
});
if (isOnce) {
  console.log(
    '\nThe service ends with this program. `npm start` keeps it, with a token, a curl line and the dashboard.',
  );
} else {
  console.log('\nThe service continues to listen. Press Ctrl-C to stop it.');
  await stop;
}
// Accepts no further requests, waits for running executions, then closes the store.
const closed = new Promise((resolve) => server.close(resolve));
await orchestrator.close();
// Clients may keep idle connections open.
setTimeout(() => server.closeAllConnections(), 1000).unref();
await closed;
await shop.close();

async function runOrders() {
  const orders = new URL('orders/', here);
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
      printOutput(run.output);
    } catch (error) {
      // An input that does not fit is refused before anything runs.
      if (!isOrchestratorError(error, 'INVALID_INPUT')) throw error;
      console.log(line('=>', 'refused', undefined, error.message));
    }
  }
}

/** Creates a token, because the values of earlier tokens are not stored. Revokes the expired tokens of earlier starts. */
async function createToken() {
  const tokens = await orchestrator.tokens.list();
  const admin = { scopes: ['admin'], plan: 'enterprise' };
  if (tokens.length === 0) return orchestrator.tokens.create({ name: 'admin', ...admin });
  const old = tokens.filter(({ name, expiresAt }) => name === 'quickstart' && expiresAt <= Date.now());
  for (const { id } of old) await orchestrator.tokens.revoke(id);
  return orchestrator.tokens.create({ name: 'quickstart', ...admin, expiresIn: 86_400 });
}

function printHowToCall() {
  console.log(`\nThe same project as a service: ${url}, with the store ${path}`);
  console.log(`An admin token, shown only once${expiresAt ? ', valid for a day' : ''}: ${token}`);
  const options = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`);
  console.log(`\nTry it:\n\ncurl ${url}/api/v1/execute/ensemble/order-intake ${options.join(' ')} -d '${body}'`);
  console.log(`\nSee it in a browser, and sign in with the token above: ${url}`);
}

/** Sends a request to the service, and prints the record that it returns. */
async function callOnce() {
  const api = `${url}/api/v1`;
  console.log(`\n${isOnce ? 'A request to the same project as a service' : 'The same request'}, sent by this program`);
  const response = await fetch(`${api}/execute/ensemble/order-intake`, { method: 'POST', headers, body });
  const result = await response.json();
  if (!response.ok) throw new Error(`the service responded with ${response.status}: ${JSON.stringify(result)}`);
  const run = await (await fetch(`${api}/executions/${result.executionId}`, { headers })).json();
  console.log(line('=>', run.output.decision, run.duration, `${run.agents.length} agents ran, as ${run.id}`));
  printOutput(run.output);
}
