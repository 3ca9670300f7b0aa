/** The schema as migrations, each from one version to the next, and the code that brings a database up to date. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { readNumber } from '../../sql/columns.ts';
import { hash32, type SqlClient, type SqlRunner, type Statement, statement } from '../drivers/driver.ts';

/**
 * Released migrations never change; a new version is a new entry. `$` stands for the schema's name.
 *
 * - `ref` and `seq` grow over time. A statement that deletes an execution also deletes its steps and signals.
 * - Text sorts by its bytes, whatever the order of the database is, because keys and ids are listed in this order.
 * - An unfinished execution is held by a worker, or free with a `due_at`. One index serves the free executions, and one
 *   the executions that have not completed.
 * - Of the indexes for a lookup by id, only the primary key begins with the namespace. While a table has no statistics,
 *   the planner considers two indexes equal that begin with the same column.
 * - Statistics of a nearly empty table would make the planner read the whole table. Prepared statements would continue
 *   to do so while the table grows, until the next statistics. So a table has no statistics before a thousand rows
 *   changed.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE $.owners (
    ref integer GENERATED ALWAYS AS IDENTITY,
    lease_until bigint NOT NULL,
    locks boolean NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, id)
  );
  CREATE TABLE $.executions (
    ref bigint GENERATED ALWAYS AS IDENTITY,
    created_at bigint NOT NULL,
    started_at bigint,
    due_at bigint,
    deadline_at bigint,
    cancel_at bigint,
    finished_at bigint,
    duration double precision,
    owner integer,
    epoch integer NOT NULL,
    recoveries integer NOT NULL DEFAULT 0,
    agents integer,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    ensemble text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    seed text NOT NULL,
    started_by text NOT NULL,
    retry_of text,
    error text,
    output text,
    input text NOT NULL,
    PRIMARY KEY (namespace, id)
  ) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
  CREATE INDEX executions_by_ensemble ON $.executions (ensemble, namespace, id);
  CREATE INDEX executions_by_status ON $.executions (namespace, status, id) WHERE status <> 'completed';
  CREATE INDEX executions_due ON $.executions (namespace, ensemble, version, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX executions_to_cancel ON $.executions (owner) WHERE cancel_at IS NOT NULL AND owner IS NOT NULL;
  CREATE TABLE $.steps (
    execution bigint NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    started_at bigint NOT NULL,
    retry_at bigint,
    duration double precision NOT NULL,
    attempts integer NOT NULL,
    note boolean NOT NULL,
    key text COLLATE "C" NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    error text,
    output text NOT NULL,
    PRIMARY KEY (execution, key)
  ) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
  CREATE TABLE $.deliveries (
    execution bigint NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    created_at bigint NOT NULL,
    due_at bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    status text NOT NULL DEFAULT 'pending',
    id text COLLATE "C" NOT NULL,
    event text NOT NULL,
    target text NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (execution, id)
  ) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
  CREATE TABLE $.definitions (
    namespace text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    needs text NOT NULL,
    definition text NOT NULL,
    PRIMARY KEY (namespace, version)
  );
  CREATE TABLE $.states (
    version integer NOT NULL,
    updated_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    ensemble text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (namespace, ensemble)
  );
  CREATE TABLE $.tokens (
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used bigint,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    name text NOT NULL,
    scopes text NOT NULL,
    plan text NOT NULL,
    last4 text NOT NULL,
    PRIMARY KEY (namespace, id),
    UNIQUE (namespace, digest)
  );
  CREATE TABLE $.kv (
    expires_at bigint,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (namespace, key)
  );
  CREATE INDEX kv_by_expiry ON $.kv (namespace, expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE $.objects (
    updated_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    content_type text NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (namespace, key)
  );
  `,
  // The process of a worker, and since when its lock was seen free.
  'ALTER TABLE $.owners ADD COLUMN process text, ADD COLUMN unlocked_at timestamptz;',
  // `signalled_at` is when the first signal since the last claim arrived.
  `
  ALTER TABLE $.executions ADD COLUMN signals integer, ADD COLUMN signalled_at bigint;
  CREATE INDEX executions_signalled ON $.executions (owner) WHERE signalled_at IS NOT NULL AND owner IS NOT NULL;
  CREATE TABLE $.signals (
    execution bigint NOT NULL,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    created_at bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (execution, id)
  ) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
  CREATE INDEX signals_by_name ON $.signals (execution, name, seq);
  CREATE TABLE $.sent_signals (
    seq bigint GENERATED ALWAYS AS IDENTITY,
    created_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    execution text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (namespace, seq)
  );
  `,
  // The trigger contains these ids too; as columns, an index can find them. They are set for child executions only.
  `
  ALTER TABLE $.executions ADD COLUMN parent_id text COLLATE "C", ADD COLUMN root_id text COLLATE "C";
  CREATE INDEX executions_by_parent ON $.executions (parent_id, namespace, id) WHERE parent_id IS NOT NULL;
  CREATE INDEX executions_by_root ON $.executions (root_id, namespace) WHERE root_id IS NOT NULL;
  `,
  `
  CREATE TABLE $.schedules (
    version integer NOT NULL,
    updated_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (namespace, name)
  );
  `,
  // Each entry of these indexes ends with an id, so equal entries are versions of one row. Deduplication would search
  // each page for nothing.
  ['pkey', 'by_ensemble', 'by_status']
    .map((index) => `ALTER INDEX $.executions_${index} SET (deduplicate_items = off);`)
    .join('\n'),
  // Two indexes that together contain each step once, in the order in which steps were first stored. The planner can
  // use neither instead of the primary key for a lookup by key.
  `
  CREATE INDEX steps_runs ON $.steps (execution, seq) WHERE NOT note;
  CREATE INDEX steps_notes ON $.steps (execution, seq) WHERE note;
  ALTER TABLE $.executions ADD COLUMN waits_for text;
  `,
  // When the execution was last claimed, its share of the blame for dead workers, and the newest worker when it was
  // last blamed.
  'ALTER TABLE $.executions ADD COLUMN claimed_at bigint, ADD COLUMN blame integer, ADD COLUMN blamed_at integer;',
  // Nothing reads or writes this table.
  'DROP TABLE $.deliveries;',
  // What the last run left, and the first claim since then.
  'ALTER TABLE $.executions ADD COLUMN handover text, ADD COLUMN resumed_at bigint;',
  // Own ids do not sort by time, so lists are in the order of `created_at` and `id`. `tags` of an execution is a list in
  // JSON; the table finds executions by tag, newest first, and its keys follow from the execution's row. The condition of
  // the index by creation is always true: because of it, no plan for a lookup by id considers this index.
  `
  ALTER TABLE $.executions ADD COLUMN idempotency_key text COLLATE "C", ADD COLUMN tags text;
  CREATE UNIQUE INDEX executions_by_key ON $.executions (idempotency_key, namespace) WHERE idempotency_key IS NOT NULL;
  CREATE TABLE $.tags (
    created_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, tag, created_at, id)
  ) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
  CREATE INDEX executions_by_creation ON $.executions (namespace, created_at, id)
    WITH (deduplicate_items = off) WHERE created_at IS NOT NULL;
  DROP INDEX $.executions_by_ensemble;
  CREATE INDEX executions_by_ensemble ON $.executions (ensemble, namespace, created_at, id)
    WITH (deduplicate_items = off);
  DROP INDEX $.executions_by_status;
  CREATE INDEX executions_by_status ON $.executions (namespace, status, created_at, id)
    WITH (deduplicate_items = off) WHERE status <> 'completed';
  DROP INDEX $.executions_by_parent;
  CREATE INDEX executions_by_parent ON $.executions (parent_id, namespace, created_at, id) WHERE parent_id IS NOT NULL;
  `,
  // The check refuses a charge beyond the quota of the caller: `max` is the quota of the last charge. The rates survive no crash of
  // the server. Their updates stay on the page of the row, because no index has a column that changes.
  `
  CREATE TABLE $.documents (
    version integer NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint,
    namespace text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (namespace, kind, name)
  );
  CREATE INDEX documents_by_expiry ON $.documents (expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE $.charges (
    charged bigint NOT NULL,
    max bigint,
    namespace text COLLATE "C" NOT NULL,
    account text COLLATE "C" NOT NULL,
    period text COLLATE "C" NOT NULL,
    CONSTRAINT charges_within_quota CHECK (charged <= max),
    PRIMARY KEY (namespace, account, period)
  ) WITH (fillfactor = 50);
  CREATE UNLOGGED TABLE $.rates (
    ends_at bigint NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    requests text NOT NULL,
    PRIMARY KEY (namespace, key)
  ) WITH (fillfactor = 50);
  `,
  // With the status, this index alone answers a list of an ensemble by status, also when nothing is found. It costs no
  // write more: the indexes by status already make each change of a status a new entry of every index.
  `
  DROP INDEX $.executions_by_ensemble;
  CREATE INDEX executions_by_ensemble ON $.executions (ensemble, namespace, status, created_at, id)
    WITH (deduplicate_items = off);
  `,
  // The caller whose slot the execution takes while a worker holds it. The charges of the period \`running\` count the slots that are
  // taken, and their \`max\` is how many there are.
  `
  ALTER TABLE $.executions ADD COLUMN account text COLLATE "C";
  CREATE INDEX executions_slots ON $.executions (namespace, account) WHERE account IS NOT NULL AND owner IS NOT NULL;
  `,
  // The first index finds what is due of a receiver; what has been sent is not in it. The others list, and begin with a column of their own,
  // so that no plan for a lookup by id considers them.
  `
  CREATE TABLE $.deliveries (
    created_at bigint NOT NULL,
    due_at bigint,
    notification integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    attempts_before integer NOT NULL DEFAULT 0,
    namespace text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    execution text COLLATE "C" NOT NULL,
    ensemble text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    receiver text COLLATE "C" NOT NULL,
    event text NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'pending',
    log text NOT NULL DEFAULT '[]',
    body text NOT NULL,
    PRIMARY KEY (namespace, id)
  ) WITH (fillfactor = 90, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
  CREATE INDEX deliveries_due ON $.deliveries (namespace, receiver, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX deliveries_by_execution ON $.deliveries (execution, namespace, id);
  CREATE INDEX deliveries_by_ensemble ON $.deliveries (ensemble, namespace, id);
  CREATE INDEX deliveries_by_status ON $.deliveries (status, namespace, id) WHERE status <> 'succeeded';
  `,
  // An execution that succeeds is never in this index, so it costs a success nothing. An entry of an index has a limited size, and a host
  // may throw any code.
  `
  CREATE INDEX executions_by_error ON $.executions (left(substring(error from '"code":"([^"]*)"'), 128), namespace, created_at, id)
    WHERE error IS NOT NULL;
  `,
  // `retried` says that another execution has the key of its retry. An execution that succeeds is never in this index.
  `
  ALTER TABLE $.executions ADD COLUMN retried boolean;
  UPDATE $.executions e SET retried = true WHERE status <> 'completed' AND EXISTS (
    SELECT FROM $.executions r WHERE r.namespace = e.namespace AND r.idempotency_key = 'retry:' || e.id);
  CREATE INDEX executions_unresolved ON $.executions (namespace, created_at, id)
    WHERE status IN ('failed', 'timed_out') AND retried IS NULL;
  `,
];

/** The first half of the key of a schema's advisory locks. The second half is a worker's `ref`, or 0 for migrations. */
export function lockKey(schema: string): number {
  return hash32(schema) >>> 1;
}

/**
 * Brings the schema to the newest version in one transaction. Several processes may do this at the same time; each
 * waits for the one before.
 *
 * @throws NOT_CONFIGURED when the schema is newer than this library, or the database can't store all text; then nothing
 *   is written
 */
export async function migrate(
  client: SqlClient,
  schema: string,
  migrations: readonly string[] = MIGRATIONS,
): Promise<void> {
  const read = versionReader(schema, migrations.length);
  if ((await read(client)) === migrations.length) return;
  await client.transaction(async (transaction) => {
    await transaction.run(LOCK, [lockKey(schema)]);
    const version = await read(transaction);
    if (version === undefined) {
      const known = (await transaction.run(FIND_SCHEMA, [schema])).rows;
      // A user without the right to create schemas can use an existing schema.
      if (known.length === 0) await transaction.exec(`CREATE SCHEMA "${schema}"`);
      await transaction.exec(`CREATE TABLE "${schema}".schema_version (version integer NOT NULL)`);
      await transaction.exec(`INSERT INTO "${schema}".schema_version VALUES (0)`);
    }
    for (const step of migrations.slice(version ?? 0)) await transaction.exec(step.replaceAll('$', `"${schema}"`));
    await transaction.exec(`UPDATE "${schema}".schema_version SET version = ${migrations.length}`);
  });
}

const LOCK = statement('SELECT pg_advisory_xact_lock($1::integer, 0)', ['pg_advisory_xact_lock']);
// Reads the catalogs, because after a wait for the lock, the resolution of names may be out of date.
const FIND_SCHEMA = statement('SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1', ['oid']);
const FIND_TABLE = statement(
  `SELECT current_setting('server_encoding') AS encoding, (
    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'schema_version'
  ) AS found`,
  ['encoding', 'found'],
);

/** Reads the schema's version; undefined for a database without one. Writes nothing. */
function versionReader(schema: string, newest: number): (runner: SqlRunner) => Promise<number | undefined> {
  const select: Statement = statement(`SELECT version FROM "${schema}".schema_version`, ['version']);
  return async (runner) => {
    const [about] = (await runner.run(FIND_TABLE, [schema])).rows;
    if (about?.encoding !== 'UTF8') {
      const message = `postgresStorage: the database's encoding is ${about?.encoding}, which can't store all text; use a database with the encoding UTF8`;
      throw new OrchestratorError('NOT_CONFIGURED', message);
    }
    if (about.found === null) return undefined;
    const [row] = (await runner.run(select, [])).rows;
    if (!row) {
      const message = `postgresStorage: the schema ${schema} holds no version; restore it from a backup, or name another one`;
      throw new OrchestratorError('NOT_CONFIGURED', message);
    }
    const version = readNumber(row, 'version', `schema ${schema}`);
    if (version <= newest) return version;
    const message = `postgresStorage: the schema ${schema} was written by a newer version of ensemble-orchestrator (its version is ${version}, this library knows up to ${newest}); update the library, or name another schema. Nothing was changed`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { details: { version, supported: newest } });
  };
}
