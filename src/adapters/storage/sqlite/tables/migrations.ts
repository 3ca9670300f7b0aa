/** The schema as migrations, each from one version to the next, and the code that brings a file up to date. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { createTransaction, type SqlConnection } from '../drivers/driver.ts';

/**
 * Released migrations never change; a new version is a new entry. All names begin with `ensemble_`, so that an app can
 * have the tables in its own file. The app keeps `user_version` for itself.
 *
 * - `ref` and `seq` grow as long as no newer row is deleted. A transaction that deletes an execution also deletes its
 *   steps and signals.
 * - Long columns come last, because SQLite reads a column by passing all columns before it.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE ensemble_executions (
    ref INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    ensemble TEXT NOT NULL,
    version TEXT NOT NULL,
    status TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seed TEXT NOT NULL,
    started_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    deadline_at INTEGER,
    finished_at INTEGER,
    duration INTEGER,
    agents INTEGER,
    error TEXT,
    output TEXT,
    input TEXT NOT NULL,
    UNIQUE (namespace, id)
  );
  CREATE INDEX ensemble_executions_by_ensemble ON ensemble_executions (namespace, ensemble, id);
  CREATE INDEX ensemble_executions_by_status ON ensemble_executions (namespace, status, id);
  CREATE TABLE ensemble_steps (
    seq INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    retry_at INTEGER,
    error TEXT,
    output TEXT NOT NULL,
    UNIQUE (execution, key)
  );
  CREATE TABLE ensemble_definitions (
    namespace TEXT NOT NULL,
    version TEXT NOT NULL,
    needs TEXT NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (namespace, version)
  );
  CREATE TABLE ensemble_states (
    namespace TEXT NOT NULL,
    ensemble TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (namespace, ensemble)
  );
  CREATE TABLE ensemble_tokens (
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    plan TEXT NOT NULL,
    last4 TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used INTEGER,
    PRIMARY KEY (namespace, id),
    UNIQUE (namespace, digest)
  );
  CREATE TABLE ensemble_kv (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    expires_at INTEGER,
    value TEXT NOT NULL,
    PRIMARY KEY (namespace, key)
  ) WITHOUT ROWID;
  CREATE INDEX ensemble_kv_by_expiry ON ensemble_kv (expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE ensemble_objects (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    content_type TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (namespace, key)
  );
  `,
  // Added columns come after the long ones. So an index alone must answer frequent queries: `held` the fence of every
  // write, `due` the executions that are due. Executions that version 1 left running are free, because no process can
  // still run them. In version 1, executions started when they were accepted; -1 means this, so that the migration need
  // not write every row.
  `
  ALTER TABLE ensemble_executions ADD COLUMN owner TEXT;
  ALTER TABLE ensemble_executions ADD COLUMN due_at INTEGER;
  ALTER TABLE ensemble_executions ADD COLUMN started_at INTEGER DEFAULT -1;
  ALTER TABLE ensemble_executions ADD COLUMN recoveries INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE ensemble_executions ADD COLUMN cancel_requested INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE ensemble_executions ADD COLUMN retry_of TEXT;
  UPDATE ensemble_executions SET due_at = created_at WHERE status = 'running' AND finished_at IS NULL;
  CREATE INDEX ensemble_executions_held ON ensemble_executions (namespace, id, epoch, owner) WHERE owner IS NOT NULL;
  CREATE INDEX ensemble_executions_due ON ensemble_executions (namespace, ensemble, version, due_at)
    WHERE due_at IS NOT NULL;
  CREATE INDEX ensemble_executions_to_cancel ON ensemble_executions (namespace, owner)
    WHERE cancel_requested = 1 AND owner IS NOT NULL;
  ALTER TABLE ensemble_steps ADD COLUMN note INTEGER;
  CREATE INDEX ensemble_steps_notes ON ensemble_steps (execution) WHERE note = 1;
  CREATE TABLE ensemble_owners (
    joined INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    owner TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    UNIQUE (namespace, owner)
  );
  CREATE TABLE ensemble_deliveries (
    seq INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL,
    id TEXT NOT NULL,
    event TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    target TEXT NOT NULL,
    payload TEXT NOT NULL,
    UNIQUE (execution, id)
  );
  `,
  // `signalled_at` is when the first signal since the last claim arrived; by the index, workers find such executions.
  `
  ALTER TABLE ensemble_executions ADD COLUMN signals INTEGER;
  ALTER TABLE ensemble_executions ADD COLUMN signalled_at INTEGER;
  CREATE INDEX ensemble_executions_signalled ON ensemble_executions (namespace, owner)
    WHERE signalled_at IS NOT NULL AND owner IS NOT NULL;
  CREATE TABLE ensemble_signals (
    seq INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    payload TEXT NOT NULL,
    UNIQUE (execution, id)
  );
  CREATE INDEX ensemble_signals_by_name ON ensemble_signals (execution, name, seq);
  `,
  // The trigger contains these ids too; as columns, an index can find them. They are set for child executions only.
  `
  ALTER TABLE ensemble_executions ADD COLUMN parent_id TEXT;
  ALTER TABLE ensemble_executions ADD COLUMN root_id TEXT;
  CREATE INDEX ensemble_executions_by_parent ON ensemble_executions (namespace, parent_id, id)
    WHERE parent_id IS NOT NULL;
  CREATE INDEX ensemble_executions_by_root ON ensemble_executions (namespace, root_id) WHERE root_id IS NOT NULL;
  `,
  `
  CREATE TABLE ensemble_schedules (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
  ) WITHOUT ROWID;
  `,
  // Held executions are only in the index `held`, and completed ones are in no index by status. So an execution that
  // succeeds is never moved within the index by status.
  `
  DROP INDEX ensemble_executions_by_status;
  CREATE INDEX ensemble_executions_by_status ON ensemble_executions (namespace, status, id)
    WHERE status <> 'completed' AND owner IS NULL;
  `,
  // Agent runs in the order in which they were first stored, which is the row order; ended waits by the signal's name.
  // Because the first index contains `note`, it alone can count runs.
  `
  CREATE INDEX ensemble_steps_runs ON ensemble_steps (execution, note) WHERE note IS NULL;
  CREATE INDEX ensemble_steps_waits ON ensemble_steps (execution, name) WHERE note = 1 AND name <> '';
  ALTER TABLE ensemble_executions ADD COLUMN waits_for TEXT;
  `,
  // When the execution was last claimed, its share of the blame for dead workers, and the newest worker when it was
  // last blamed.
  `
  ALTER TABLE ensemble_executions ADD COLUMN claimed_at INTEGER;
  ALTER TABLE ensemble_executions ADD COLUMN blame INTEGER;
  ALTER TABLE ensemble_executions ADD COLUMN blamed_at INTEGER;
  `,
  // Nothing reads or writes this table.
  'DROP TABLE ensemble_deliveries;',
  // What the last run left, and the first claim since then.
  `
  ALTER TABLE ensemble_executions ADD COLUMN handover TEXT;
  ALTER TABLE ensemble_executions ADD COLUMN resumed_at INTEGER;
  `,
  // Own ids do not sort by time, so lists are in the order of `created_at` and `id`. `tags` of an execution is a list in
  // JSON; the table finds executions by tag, newest first, and its keys follow from the execution's row.
  `
  ALTER TABLE ensemble_executions ADD COLUMN idempotency_key TEXT;
  ALTER TABLE ensemble_executions ADD COLUMN tags TEXT;
  CREATE UNIQUE INDEX ensemble_executions_by_key ON ensemble_executions (namespace, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
  CREATE TABLE ensemble_tags (
    namespace TEXT NOT NULL,
    tag TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (namespace, tag, created_at, id)
  ) WITHOUT ROWID;
  CREATE INDEX ensemble_executions_by_creation ON ensemble_executions (namespace, created_at, id);
  DROP INDEX ensemble_executions_by_ensemble;
  CREATE INDEX ensemble_executions_by_ensemble ON ensemble_executions (namespace, ensemble, created_at, id);
  DROP INDEX ensemble_executions_by_status;
  CREATE INDEX ensemble_executions_by_status ON ensemble_executions (namespace, status, created_at, id)
    WHERE status <> 'completed' AND owner IS NULL;
  DROP INDEX ensemble_executions_by_parent;
  CREATE INDEX ensemble_executions_by_parent ON ensemble_executions (namespace, parent_id, created_at, id)
    WHERE parent_id IS NOT NULL;
  `,
  `
  CREATE TABLE ensemble_documents (
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    value TEXT NOT NULL,
    PRIMARY KEY (namespace, kind, name)
  ) WITHOUT ROWID;
  CREATE INDEX ensemble_documents_by_expiry ON ensemble_documents (expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE ensemble_charges (
    namespace TEXT NOT NULL,
    account TEXT NOT NULL,
    period TEXT NOT NULL,
    charged INTEGER NOT NULL,
    PRIMARY KEY (namespace, account, period)
  ) WITHOUT ROWID;
  CREATE TABLE ensemble_rates (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    ends_at INTEGER NOT NULL,
    requests TEXT NOT NULL,
    PRIMARY KEY (namespace, key)
  ) WITHOUT ROWID;
  CREATE INDEX ensemble_rates_by_end ON ensemble_rates (ends_at);
  `,
  // An execution that succeeds is never in this index, so it costs a success nothing.
  `
  CREATE INDEX ensemble_executions_by_ensemble_status ON ensemble_executions (namespace, ensemble, status, created_at, id)
    WHERE status <> 'completed' AND owner IS NULL;
  `,
  // The slot of an execution that a worker holds: `slots` is how many the caller `account` has. A search for executions that are due
  // passes those of a caller without a free slot in the index.
  `
  ALTER TABLE ensemble_executions ADD COLUMN account TEXT;
  ALTER TABLE ensemble_executions ADD COLUMN slots INTEGER;
  CREATE INDEX ensemble_executions_slots ON ensemble_executions (namespace, account, slots)
    WHERE account IS NOT NULL AND owner IS NOT NULL;
  DROP INDEX ensemble_executions_due;
  CREATE INDEX ensemble_executions_due ON ensemble_executions (namespace, ensemble, version, due_at, account)
    WHERE due_at IS NOT NULL;
  `,
  // The first index finds what is due of a receiver; what has been sent is not in it.
  `
  CREATE TABLE ensemble_deliveries (
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    execution TEXT NOT NULL,
    ensemble TEXT NOT NULL,
    version TEXT NOT NULL,
    notification INTEGER NOT NULL,
    event TEXT NOT NULL,
    receiver TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    attempts_before INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    due_at INTEGER,
    log TEXT NOT NULL DEFAULT '[]',
    body TEXT NOT NULL,
    PRIMARY KEY (namespace, id)
  );
  CREATE INDEX ensemble_deliveries_due ON ensemble_deliveries (namespace, receiver, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX ensemble_deliveries_by_execution ON ensemble_deliveries (namespace, execution, id);
  CREATE INDEX ensemble_deliveries_by_ensemble ON ensemble_deliveries (namespace, ensemble, id);
  CREATE INDEX ensemble_deliveries_by_status ON ensemble_deliveries (namespace, status, id) WHERE status <> 'succeeded';
  `,
  // An execution that succeeds is never in this index, so it costs a success nothing. Functions for JSON would refuse a damaged row.
  `
  CREATE INDEX ensemble_executions_by_error ON ensemble_executions (
    namespace,
    substr(error, instr(error, '"code":"') + 8, instr(substr(error, instr(error, '"code":"') + 8), '"') - 1),
    created_at, id
  ) WHERE error IS NOT NULL;
  `,
  // `retried` says that another execution has the key of its retry. An execution that succeeds is never in this index.
  `
  ALTER TABLE ensemble_executions ADD COLUMN retried INTEGER;
  UPDATE ensemble_executions AS e SET retried = 1 WHERE status <> 'completed' AND EXISTS (
    SELECT 1 FROM ensemble_executions AS r WHERE r.namespace = e.namespace AND r.idempotency_key = 'retry:' || e.id);
  CREATE INDEX ensemble_executions_unresolved ON ensemble_executions (namespace, created_at, id)
    WHERE status IN ('failed', 'timed_out') AND retried IS NULL;
  `,
];

/**
 * Brings the file to the newest version, in one transaction for each migration. Several processes may do this at the
 * same time: each transaction checks under the write lock whether its migration is still to be done.
 *
 * @param store - what error messages call the store
 * @throws NOT_CONFIGURED when the file's schema is newer than this library; then nothing is written
 */
export function migrate(connection: SqlConnection, store: string, migrations: readonly string[] = MIGRATIONS): void {
  const transaction = createTransaction(connection);
  while (readVersion(connection, store, migrations) < migrations.length) {
    transaction(() => {
      const version = readVersion(connection, store, migrations);
      if (version >= migrations.length) return;
      if (version === 0) connection.exec('CREATE TABLE ensemble_schema (version INTEGER NOT NULL)');
      connection.exec(migrations[version] as string);
      connection.exec(
        version === 0
          ? 'INSERT INTO ensemble_schema VALUES (1)'
          : `UPDATE ensemble_schema SET version = ${version + 1}`,
      );
    });
  }
}

/**
 * Reads the schema's version; 0 for a file without one. Writes nothing.
 * @param store - what error messages call the store
 * @throws NOT_CONFIGURED when it is newer than this library
 */
export function readVersion(
  connection: SqlConnection,
  store: string,
  migrations: readonly string[] = MIGRATIONS,
): number {
  const found = connection
    .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ensemble_schema'")
    .all([]);
  if (found.length === 0) return 0;
  const version = connection.prepare('SELECT version FROM ensemble_schema').all([])[0]?.version;
  if (typeof version !== 'number' || version < 1) {
    throw new OrchestratorError('NOT_CONFIGURED', `${store} holds no schema version; restore it from a backup`);
  }
  if (version > migrations.length) {
    const message = `${store} was written by a newer version of ensemble-orchestrator (its schema is ${version}, this version knows up to ${migrations.length}); update the library, or use another store. Nothing was changed`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { details: { version, supported: migrations.length } });
  }
  return version;
}
