/** Creates a SQLite file with version 1 of the schema, and an execution in it that ran when its process ended. */

import { rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ENSEMBLES, INPUT } from './flows.mjs';
import { loadLibrary } from './library.mjs';
import { toStored } from './watched-storage.mjs';

/** Version 1, word for word: a released schema does not change. */
const SCHEMA = `
  CREATE TABLE ensemble_schema (version INTEGER NOT NULL);
  INSERT INTO ensemble_schema VALUES (1);
  CREATE TABLE ensemble_executions (
    ref INTEGER PRIMARY KEY, namespace TEXT NOT NULL, id TEXT NOT NULL, ensemble TEXT NOT NULL, version TEXT NOT NULL,
    status TEXT NOT NULL, epoch INTEGER NOT NULL, seed TEXT NOT NULL, started_by TEXT NOT NULL, created_at INTEGER NOT NULL,
    deadline_at INTEGER, finished_at INTEGER, duration INTEGER, agents INTEGER, error TEXT, output TEXT, input TEXT NOT NULL,
    UNIQUE (namespace, id)
  );
  CREATE INDEX ensemble_executions_by_ensemble ON ensemble_executions (namespace, ensemble, id);
  CREATE INDEX ensemble_executions_by_status ON ensemble_executions (namespace, status, id);
  CREATE TABLE ensemble_steps (
    seq INTEGER PRIMARY KEY, execution INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL,
    attempts INTEGER NOT NULL, started_at INTEGER NOT NULL, duration INTEGER NOT NULL, retry_at INTEGER, error TEXT,
    output TEXT NOT NULL, UNIQUE (execution, key)
  );
  CREATE TABLE ensemble_definitions (
    namespace TEXT NOT NULL, version TEXT NOT NULL, needs TEXT NOT NULL, definition TEXT NOT NULL,
    PRIMARY KEY (namespace, version)
  );
  CREATE TABLE ensemble_states (
    namespace TEXT NOT NULL, ensemble TEXT NOT NULL, version INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (namespace, ensemble)
  );
  CREATE TABLE ensemble_tokens (
    namespace TEXT NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
    plan TEXT NOT NULL, last4 TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER, last_used INTEGER,
    PRIMARY KEY (namespace, id), UNIQUE (namespace, digest)
  );
  CREATE TABLE ensemble_kv (
    namespace TEXT NOT NULL, key TEXT NOT NULL, expires_at INTEGER, value TEXT NOT NULL, PRIMARY KEY (namespace, key)
  ) WITHOUT ROWID;
  CREATE INDEX ensemble_kv_by_expiry ON ensemble_kv (expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE ensemble_objects (
    namespace TEXT NOT NULL, key TEXT NOT NULL, content_type TEXT NOT NULL, updated_at INTEGER NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (namespace, key)
  );`;
const COPY = `
  INSERT INTO ensemble_definitions SELECT namespace, version, needs, definition FROM newer.ensemble_definitions;
  INSERT INTO ensemble_executions (namespace, id, ensemble, version, status, epoch, seed, started_by, created_at, input)
    SELECT namespace, id, ensemble, version, 'running', 1, seed, started_by, created_at, input
    FROM newer.ensemble_executions;`;
/** The first result of the flow, which the process stored before it ended. */
const STEP = {
  key: 'flow[0]',
  name: 'reserve',
  status: 'completed',
  attempts: 1,
  duration: 3,
  output: { nonce: 'older' },
};

/** @param path - of the new file; @param record - writes to the history what happened to the execution */
export async function makeOlderStore(path, record) {
  const newer = `${path}-newer`;
  const { createOrchestrator, embeddedEngine, sqliteStorage } = await loadLibrary();
  const storage = sqliteStorage({ path: newer });
  const engine = embeddedEngine({ concurrency: 0 });
  const orchestrator = createOrchestrator({ ensembles: ENSEMBLES.slice(0, 1), scripts: SCRIPTS, storage, engine });
  const { id } = await orchestrator.start('line', INPUT);
  const { createdAt } = await storage.executions.getAccepted(id);
  await orchestrator.close();

  const step = { ...STEP, startedAt: createdAt };
  const database = await open(path);
  database.exec(`PRAGMA journal_mode = WAL; ${SCHEMA} ATTACH '${newer}' AS newer; ${COPY}`);
  database.exec(`INSERT INTO ensemble_steps (execution, key, name, status, attempts, started_at, duration, output)
    VALUES (1, '${step.key}', '${step.name}', '${step.status}', 1, ${createdAt}, 3, '${JSON.stringify(step.output)}')`);
  database.close();
  for (const end of ['', '-wal', '-shm', '-owner']) rmSync(newer + end, { force: true });

  const stored = toStored(id, step);
  const about = { id, epoch: 1, result: 'stored', ensemble: 'line', steps: [stored] };
  record('accepted', { id });
  record('wrote', { number: 0, all: [about] });
  record('effect', { id, key: stored.key, attempt: 1, nonce: step.output.nonce });
}

/** They never run, because the orchestrator only queues. */
const SCRIPTS = { act() {}, flaky() {}, slow() {} };

async function open(path) {
  const own = await import('node:sqlite').catch(() => undefined);
  return own ? new own.DatabaseSync(path) : new (createRequire(import.meta.url)('libsql'))(path);
}
