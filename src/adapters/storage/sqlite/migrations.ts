/** The schema, as steps that each lead from one version to the next, and how a file is brought up to date. */

import { OrchestratorError } from '../../../engine/errors.ts';
import { CHILDREN_MIGRATION } from './children-table.ts';
import { createTransaction, type SqlConnection } from './connection.ts';

/**
 * A migration that was released is never changed: the next version is a new entry. All names begin with `ensemble_`, so that
 * the tables can stand in an app's own file, whose `user_version` stays the app's.
 *
 * `ref` and `seq` grow while nothing newer is deleted; whoever deletes an execution deletes its steps and its deliveries in the
 * same transaction.
 * Long columns stand last: what stands before them is read without them.
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
  // Columns that are added stand behind the long ones, so what is asked for often must be answered by an index alone: the
  // fence of every write by `held`, what is due by `due`. What version 1 left running is free: nobody can be at it any more.
  // Its executions began when they were accepted, which -1 stands for: so that not every row has to be written.
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
  // `signalled_at` is the first signal since the execution was claimed; the index tells owners of those.
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
  CHILDREN_MIGRATION,
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
  // What is at work stands in `held` alone, and what has completed in no index of statuses: who goes well is never moved in it.
  `
  DROP INDEX ensemble_executions_by_status;
  CREATE INDEX ensemble_executions_by_status ON ensemble_executions (namespace, status, id)
    WHERE status <> 'completed' AND owner IS NULL;
  `,
  // Agents' runs in the order in which they were first stored, which is that of the rows; the ends of waits, by the signal's name.
  // With its column `note`, the first index counts runs by itself.
  `
  CREATE INDEX ensemble_steps_runs ON ensemble_steps (execution, note) WHERE note IS NULL;
  CREATE INDEX ensemble_steps_waits ON ensemble_steps (execution, name) WHERE note = 1 AND name <> '';
  ALTER TABLE ensemble_executions ADD COLUMN waits_for TEXT;
  `,
  // When it was last claimed, what it bears of the blame for the death of its owners, and the newest owner when it was last blamed.
  `
  ALTER TABLE ensemble_executions ADD COLUMN claimed_at INTEGER;
  ALTER TABLE ensemble_executions ADD COLUMN blame INTEGER;
  ALTER TABLE ensemble_executions ADD COLUMN blamed_at INTEGER;
  `,
];

/**
 * Brings the file to the newest version, one transaction a step. Several processes may do it at once: each step looks again,
 * with the write lock held, whether it is still to be done.
 *
 * @throws NOT_CONFIGURED when the file's schema is newer than this library; nothing is written then
 */
export function migrate(connection: SqlConnection, path: string, migrations: readonly string[] = MIGRATIONS): void {
  const transaction = createTransaction(connection);
  while (readVersion(connection, path, migrations) < migrations.length) {
    transaction(() => {
      const version = readVersion(connection, path, migrations);
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
 * The schema's version in the file: 0 when it holds none. Reads only.
 * @throws NOT_CONFIGURED when it is newer than this library
 */
export function readVersion(
  connection: SqlConnection,
  path: string,
  migrations: readonly string[] = MIGRATIONS,
): number {
  const found = connection
    .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'ensemble_schema'")
    .all([]);
  if (found.length === 0) return 0;
  const version = connection.prepare('SELECT version FROM ensemble_schema').all([])[0]?.version;
  if (typeof version !== 'number' || version < 1) {
    throw new OrchestratorError(
      'NOT_CONFIGURED',
      `sqliteStorage: ${path} holds no schema version; restore it from a backup`,
    );
  }
  if (version > migrations.length) {
    const message = `sqliteStorage: ${path} was written by a newer version of ensemble-orchestrator (its schema is ${version}, this version knows up to ${migrations.length}); update the library, or name another file. Nothing was changed`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { details: { version, supported: migrations.length } });
  }
  return version;
}
