/** One process that does the research. Started again after it was killed, it continues: the id finds the same execution. */
import { createOrchestrator } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';
import { sqliteStorage } from 'ensemble-orchestrator/sqlite';

const storage = sqliteStorage({ path: process.env.STORE });
const orchestrator = createOrchestrator(await loadProject(new URL('.', import.meta.url), { storage, logger: false }));
const question = 'Where do tides come from?';
const handle = await orchestrator.start('research', { question }, { id: 'research-1' });
const { status, output, error, metrics } = await handle.result();
const { steps } = await orchestrator.executions.steps(handle.id);
for (const { key, kind, name } of steps) console.log(`  ${key.padEnd(32)} ${kind.padEnd(5)} ${name}`);
console.log(`${status}: ${output?.answer ?? error?.message}`);
console.log(`${metrics.usage.inputTokens + metrics.usage.outputTokens} tokens`);
await orchestrator.close();
