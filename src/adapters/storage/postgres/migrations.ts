/** The schema, as steps that each lead from one version to the next, and how a database is brought up to date. */

import { OrchestratorError } from '../../../engine/errors.ts';
import { readNumber } from '../sql/columns.ts';
import { CHILDREN_MIGRATION } from './children-table.ts';
import { SCHEDULES_MIGRATION } from './schedules-table.ts';
import { SIGNALS_MIGRATION } from './signals-table.ts';
import { hash32, type SqlClient, type SqlRunner, type Statement, statement } from './sql-client.ts';
import { STEPS_MIGRATION } from './steps-table.ts';

/**
 * A migration that was released is never changed: the next version is a new entry. `$` stands for the schema's name.
 *
 * - `ref` and `seq` grow while time passes; whoever deletes an execution deletes what hangs on it in the same statement.
 * - Text sorts by its bytes, whatever the database's own order is: keys and ids are listed in it.
 * - What runs is held by an owner, or free with a `due_at`. One index serves all that is free, one all that has not completed.
 * - Only the primary keys begin with the namespace where rows are looked up by their id: while a table has no statistics, the
 *   planner takes one index for as good as another that begins alike.
 * - Statistics of a table that is nearly empty would make the planner read it whole, and prepared statements would go on to
 *   do so for as long as it takes until the next ones are made, while it grows. So it has none before a thousand rows changed.
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
  // Which process an owner is, and since when its lock was seen free by all who looked.
  'ALTER TABLE $.owners ADD COLUMN process text, ADD COLUMN unlocked_at timestamptz;',
  SIGNALS_MIGRATION,
  CHILDREN_MIGRATION,
  SCHEDULES_MIGRATION,
  // Each of their entries ends with an id: two that are equal are versions of one row, and to look for them, page by page, is in vain.
  ['pkey', 'by_ensemble', 'by_status']
    .map((index) => `ALTER INDEX $.executions_${index} SET (deduplicate_items = off);`)
    .join('\n'),
  STEPS_MIGRATION,
  // When it was last claimed, what it bears of the blame for the death of its owners, and the newest owner when it was last blamed.
  'ALTER TABLE $.executions ADD COLUMN claimed_at bigint, ADD COLUMN blame integer, ADD COLUMN blamed_at integer;',
];

/** The key under which advisory locks of a schema stand; the second half is an owner, or 0 for migrations. */
export function lockKey(schema: string): number {
  return hash32(schema) >>> 1;
}

/**
 * Brings the schema to the newest version, in one transaction. Several processes may do it at once: one waits for the other.
 *
 * @throws NOT_CONFIGURED when the schema is newer than this library, or the database does not hold all text; nothing is
 *   written then
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
      // Who may not create schemas can be given one that is there.
      if (known.length === 0) await transaction.exec(`CREATE SCHEMA "${schema}"`);
      await transaction.exec(`CREATE TABLE "${schema}".schema_version (version integer NOT NULL)`);
      await transaction.exec(`INSERT INTO "${schema}".schema_version VALUES (0)`);
    }
    for (const step of migrations.slice(version ?? 0)) await transaction.exec(step.replaceAll('$', `"${schema}"`));
    await transaction.exec(`UPDATE "${schema}".schema_version SET version = ${migrations.length}`);
  });
}

const LOCK = statement('SELECT pg_advisory_xact_lock($1::integer, 0)', ['pg_advisory_xact_lock']);
// The catalogs themselves are asked: what names resolve to may be out of date behind a lock that was waited for.
const FIND_SCHEMA = statement('SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1', ['oid']);
const FIND_TABLE = statement(
  `SELECT current_setting('server_encoding') AS encoding, (
    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = 'schema_version'
  ) AS found`,
  ['encoding', 'found'],
);

/** Reads the schema's version: undefined when there is none. Writes nothing. */
function versionReader(schema: string, newest: number): (runner: SqlRunner) => Promise<number | undefined> {
  const select: Statement = statement(`SELECT version FROM "${schema}".schema_version`, ['version']);
  return async (runner) => {
    const [about] = (await runner.run(FIND_TABLE, [schema])).rows;
    if (about?.encoding !== 'UTF8') {
      const message = `postgresStorage: the database's encoding is ${about?.encoding}, which can't hold all text; use a database with the encoding UTF8`;
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
