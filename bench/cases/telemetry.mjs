/** Five steps on SQLite, with and without telemetry. The spans are exported in batches, to nowhere. */

import { join } from 'node:path';
import { fiveSteps } from '../durable/library-steps.mjs';
import { importStore } from '../durable/library-store.mjs';
import { ownFolder } from '../durable/own-folder.mjs';
import { importEntry, importLibrary } from '../library.mjs';

/** @param kind - `none`, `api`: without an SDK, `spans` or `metrics` @param concurrency - executions at the same time */
export async function setup([kind, concurrency]) {
  const { sqliteStorage } = await importStore('sqlite');
  if (kind === 'spans') await registerSdk();
  const isTraced = kind === 'api' || kind === 'spans';
  const options = isTraced ? { telemetry: (await importEntry('otel')).openTelemetry() } : {};
  const { orchestrator, run } = await fiveSteps(sqliteStorage({ path: join(ownFolder(), 'library.db') }), options);
  if (kind === 'metrics') (await importLibrary()).createHandler(orchestrator, { metrics: true });
  const units = Number(concurrency);
  return { units, run: () => Promise.all(Array.from({ length: units }, run)) };
}

async function registerSdk() {
  const { context, trace } = await import('@opentelemetry/api');
  const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks');
  const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
  const nowhere = { export: (_spans, done) => done({ code: 0 }), shutdown: async () => {} };
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(nowhere)] }));
}
