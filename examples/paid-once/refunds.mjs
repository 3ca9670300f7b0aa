/** Refunds over the bank's API: one process that may die at any moment. */
import { createOrchestrator, fetchHttp } from 'ensemble-orchestrator';
import { sqliteStorage } from 'ensemble-orchestrator/sqlite';

const refund = {
  name: 'refund',
  inputs: { order: { type: 'string', required: true }, cents: { type: 'integer', required: true } },
  flow: [
    {
      agent: 'pay',
      operation: 'api',
      config: {
        url: '${env.BANK}/transfers',
        method: 'POST',
        body: { order: '${input.order}', cents: '${input.cents}' },
      },
      timeout: '2s',
    },
  ],
  outputs: { transfer: '${pay.output.body.transfer}' },
};

const orchestrator = createOrchestrator({
  ensembles: [refund],
  storage: sqliteStorage({ path: process.env.STORE }),
  env: { BANK: process.env.BANK },
  http: fetchHttp({ allow: ['127.0.0.0/8'] }),
  // The line below says what happened.
  logger: false,
});

// The id makes it one refund of the order, whoever asks how often. After a failure, the retry is the next attempt of the same refund.
const name = 'refund-1042';
const found = await orchestrator.execute('refund', { order: '1042', cents: 4200 }, { id: name });
const ended = found.status === 'completed' ? found : await (await orchestrator.executions.retry(name)).result();
console.log(`  ${ended.status}${ended.error ? `: ${ended.error.code}` : `: transfer ${ended.output.transfer}`}`);
await orchestrator.close();
