/** The schema as migrations, each from one version to the next, and the code that brings a file up to date. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { isAnyBlocked } from '../../sql/queues/queue-tables.ts';
import {
  FIRST_VERSION,
  firstSchema,
  LIMITS,
  newestVersion,
  refuseOlder,
  stepsAfter,
  TALLIES,
  toSqlite,
} from '../../sql/schema.ts';
import { createTransaction, type SqlConnection } from '../drivers/driver.ts';

/** `note` is null or 1. Without `owner`, an execution is free. `slots` is how many the caller `account` has. */
const FIRST = firstSchema({
  executions: 'owner text, cancel_requested integer NOT NULL DEFAULT 0, slots integer',
  // An index alone must answer frequent queries: `held` the fence of every write, `due` the executions that are due, and of those not the
  // ones of a caller without a free slot. An execution that succeeds is moved in no index by status, and is never in one by error.
  more: `
  CREATE TABLE $.owners (joined ROW, namespace text NOT NULL, owner text NOT NULL, lease_until integer NOT NULL, UNIQUE (namespace, owner));
  CREATE INDEX executions_held ON $.executions (namespace, id, epoch, owner) WHERE owner IS NOT NULL;
  CREATE INDEX executions_due ON $.executions (namespace, ensemble, version, due_at, account) WHERE due_at IS NOT NULL;
  CREATE INDEX executions_to_cancel ON $.executions (namespace, owner) WHERE cancel_requested = 1 AND owner IS NOT NULL;
  CREATE INDEX executions_signalled ON $.executions (namespace, owner) WHERE signalled_at IS NOT NULL AND owner IS NOT NULL;
  CREATE INDEX executions_slots ON $.executions (namespace, account, slots) WHERE account IS NOT NULL AND owner IS NOT NULL;
  CREATE INDEX executions_by_root ON $.executions (namespace, root_id) WHERE root_id IS NOT NULL;
  CREATE INDEX executions_by_parent ON $.executions (namespace, parent_id, created_at, id) WHERE parent_id IS NOT NULL;
  CREATE UNIQUE INDEX executions_by_key ON $.executions (namespace, idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE INDEX executions_by_creation ON $.executions (namespace, created_at, id);
  CREATE INDEX executions_by_ensemble ON $.executions (namespace, ensemble, created_at, id);
  CREATE INDEX executions_by_status ON $.executions (namespace, status, created_at, id)
    WHERE status <> 'completed' AND owner IS NULL;
  CREATE INDEX executions_by_ensemble_status ON $.executions (namespace, ensemble, status, created_at, id)
    WHERE status <> 'completed' AND owner IS NULL;
  CREATE INDEX executions_by_error ON $.executions (
    namespace, substr(error, instr(error, '"code":"') + 8, instr(substr(error, instr(error, '"code":"') + 8), '"') - 1), created_at, id
  ) WHERE error IS NOT NULL;
  CREATE INDEX steps_notes ON $.steps (execution) WHERE note = 1;
  CREATE INDEX steps_runs ON $.steps (execution, note) WHERE note IS NULL;
  CREATE INDEX steps_waits ON $.steps (execution, name) WHERE note = 1 AND name <> '';
  CREATE INDEX kv_by_expiry ON $.kv (expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX rates_by_end ON $.rates (ends_at);
  CREATE INDEX deliveries_by_execution ON $.deliveries (namespace, execution, id);
  CREATE INDEX deliveries_by_ensemble ON $.deliveries (namespace, ensemble, id);
  CREATE INDEX deliveries_by_status ON $.deliveries (namespace, status, id) WHERE status <> 'succeeded';`,
});

/** Of an execution that is due, and when it should have begun. */
const ARRIVE = `WHEN new.queue IS NOT NULL AND new.due_at IS NOT NULL AND new.paused_from IS NULL BEGIN
    INSERT INTO ensemble_arrivals (due_at, freed, namespace, queue, limits) VALUES (new.due_at, 0, new.namespace, new.queue, new.limits);
    INSERT INTO ensemble_arrivals (due_at, freed, namespace, queue, limits, execution)
      SELECT new.start_by, 0, new.namespace, new.queue, new.limits, new.id WHERE new.start_by IS NOT NULL AND new.status = 'queued';
    END;`;

/** Released migrations never change; a new version is a new entry. The app keeps `user_version` for itself. */
export const MIGRATIONS: readonly string[] = [
  toSqlite(FIRST),
  `${toSqlite(LIMITS)}
  DROP INDEX ensemble_executions_due;
  CREATE INDEX ensemble_executions_due ON ensemble_executions (namespace, ensemble, version, due_at, account)
    WHERE due_at IS NOT NULL AND queue IS NULL;
  CREATE TRIGGER ensemble_arrive_started AFTER INSERT ON ensemble_executions ${ARRIVE}
  CREATE TRIGGER ensemble_arrive AFTER UPDATE OF due_at ON ensemble_executions ${ARRIVE}
  CREATE TRIGGER ensemble_free AFTER UPDATE OF owner ON ensemble_executions
    WHEN old.owner IS NOT NULL AND new.owner IS NULL
      AND (old.queue IS NOT NULL OR (new.kept_until_end IS NOT NULL AND new.finished_at IS NOT NULL)) AND ${isAnyBlocked(
        'ensemble_queues',
        'namespace = new.namespace AND blocked_by IS NOT NULL',
      )}
    BEGIN INSERT INTO ensemble_arrivals (due_at, freed, namespace, queue, limits) VALUES (0, 1, new.namespace, coalesce(old.queue, '')
      || CASE WHEN new.finished_at IS NULL OR new.kept_until_end IS NULL THEN '' WHEN old.queue IS NULL THEN new.kept_until_end
        ELSE ',' || new.kept_until_end END, new.limits); END;`,
  toSqlite(TALLIES),
];

/**
 * Brings the file to the newest version, in one transaction for each migration. Several processes may do this at the
 * same time: each transaction checks under the write lock whether its migration is still to be done.
 *
 * @param store - what error messages call the store
 * @throws NOT_CONFIGURED when the file's schema is newer than this library or older than its first release; then nothing is written
 */
export function migrate(connection: SqlConnection, store: string, migrations: readonly string[] = MIGRATIONS): void {
  const transaction = createTransaction(connection);
  const read = () => readVersion(connection, store, migrations);
  while (read() < newestVersion(migrations)) {
    transaction(() => {
      const version = read();
      const [next] = stepsAfter(version, migrations);
      if (next === undefined) return;
      if (version === 0)
        connection.exec(
          'CREATE TABLE ensemble_schema (version INTEGER NOT NULL); INSERT INTO ensemble_schema VALUES (0)',
        );
      connection.exec(next);
      connection.exec(`UPDATE ensemble_schema SET version = ${version === 0 ? FIRST_VERSION : version + 1}`);
    });
  }
}

/**
 * Reads the schema's version; 0 for a file without one. Writes nothing.
 * @param store - what error messages call the store
 * @throws NOT_CONFIGURED when it is newer than this library or older than its first release
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
  refuseOlder(store, version);
  const newest = newestVersion(migrations);
  if (version > newest) {
    const message = `${store} was written by a newer version of ensemble-orchestrator (its schema is ${version}, this version knows up to ${newest}); update the library, or use another store. Nothing was changed`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { details: { version, supported: newest } });
  }
  return version;
}
