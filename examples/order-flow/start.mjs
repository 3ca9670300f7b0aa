/** Runs four orders on a manual clock, which jumps to the next due instant. So the waits take no real time. */
import { loadProject } from 'ensemble-orchestrator/node';
import { createTestOrchestrator, manualClock } from 'ensemble-orchestrator/testing';

const clock = manualClock({ now: Date.UTC(2030, 0, 31, 17, 40) });
const project = await loadProject(new URL('.', import.meta.url));
const orchestrator = createTestOrchestrator({ ...project, clock });

const line = (timestamp, what, who, more = '') =>
  console.log(`  ${timestamp.slice(5, 10)} ${timestamp.slice(11, 19)}  ${who.padEnd(10)} ${what} ${more}`.trimEnd());
orchestrator.on('agent.completed', ({ timestamp, data }) => line(timestamp, 'ok', data.agent));
orchestrator.on('agent.failed', ({ timestamp, data }) => line(timestamp, 'failed', data.agent, data.error.message));

await settle('an express order', { order: '2001', card: 'visa', shipping: 'express' });
await settle('an order sent by parcel in the morning', { order: '2002', card: 'visa' });
await settle('an order with an expired card', { order: '2003', card: 'expired' });

console.log('\nan order that its buyer cancels while the bank is polled');
const handle = await orchestrator.start('settle-order', { order: '2004', card: 'visa', shipping: 'pickup' });
await clock.advance(45_000);
await handle.cancel();
print(await handle.result());

await orchestrator.close();

async function settle(title, input) {
  console.log(`\n${title}`);
  print(await orchestrator.execute('settle-order', input));
}

function print({ status, output, partialOutput = output }) {
  console.log(`  => ${status}`);
  for (const [name, value] of Object.entries(partialOutput ?? {}))
    if (value !== null) console.log(`     ${name.padEnd(8)} ${JSON.stringify(value)}`);
}
