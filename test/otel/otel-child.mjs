/**
 * A process that exports spans to an OTLP receiver: `otel-child MODE FILE RECEIVER`. It prints `in the step` when the last step runs.
 *
 * | mode | what it does |
 * |---|---|
 * | start | starts an execution, and hangs in its last step until it is killed |
 * | continue | takes the execution over, and ends it |
 */

import { writeSync } from 'node:fs';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { createOrchestrator } from 'ensemble-orchestrator';
import { openTelemetry } from 'ensemble-orchestrator/otel';
import { sqliteStorage } from 'ensemble-orchestrator/sqlite';
import { fakeModel } from 'ensemble-orchestrator/testing';

const [, , mode, path, url] = process.argv;
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter({ url }))] });
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(provider);

const look = async () => {
  writeSync(1, 'in the step\n');
  if (mode === 'start') await new Promise((resolve) => setTimeout(resolve, 60_000));
  return 'seen';
};
const answers = [{ toolCalls: [{ name: 'look', arguments: {} }] }, 'done'];
const orchestrator = createOrchestrator({
  storage: sqliteStorage({ path }),
  telemetry: openTelemetry(),
  // What the model answered before the kill is stored, so the second process asks once.
  models: { fake: fakeModel(mode === 'start' ? answers : answers.slice(1)) },
  scripts: { first: () => 1, look },
  agents: [{ name: 'look', operation: 'code', config: { script: 'look' } }],
  ensembles: [
    {
      name: 'killed',
      flow: [
        { agent: 'first', operation: 'code', config: { script: 'first' } },
        { agent: 'ask', operation: 'think', config: { model: 'm', prompt: 'Hi', tools: [{ agent: 'look' }] } },
      ],
      outputs: { text: '${ask.output.text}' },
    },
  ],
});
if (mode === 'start') await orchestrator.execute('killed', {}, { id: 'killed-1' });
else {
  await orchestrator.ready();
  for (let tries = 0; tries < 600; tries += 1) {
    const { status, output } = await orchestrator.executions.get('killed-1');
    if (status === 'completed') {
      writeSync(1, `${JSON.stringify(output)}\n`);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await orchestrator.close();
  await provider.shutdown();
}
