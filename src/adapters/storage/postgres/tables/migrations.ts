/** The schema as migrations, each from one version to the next, and the code that brings a database up to date. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import { readNumber } from '../../sql/columns.ts';
import { firstSchema, LIMITS, newestVersion, refuseOlder, stepsAfter, TALLIES, toPostgres } from '../../sql/schema.ts';
import { hash32, type SqlClient, type SqlRunner, type Statement, statement } from '../drivers/driver.ts';

/**
 * - An unfinished execution is held by a worker, or free with a `due_at`. One index serves the free executions, and one
 *   the executions that have not completed.
 * - Of the indexes for a lookup by id, only the primary key begins with the namespace. While a table has no statistics,
 *   the planner considers two indexes equal that begin with the same column. `executions_by_creation` has a condition that is always
 *   true: because of it, no plan for a lookup by id considers this index.
 * - Statistics of a nearly empty table would make the planner read the whole table. Prepared statements would continue
 *   to do so while the table grows, until the next statistics. So a table has no statistics before a thousand rows
 *   changed.
 * - Where each entry of an index ends with an id, equal entries are versions of one row, and deduplication would search each page for nothing.
 */
const FIRST = firstSchema({
  executions: 'owner integer, cancel_at bigint',
  more: `
  CREATE TABLE $.owners (
    ref integer GENERATED ALWAYS AS IDENTITY, lease_until bigint NOT NULL, unlocked_at timestamptz, locks boolean NOT NULL,
    namespace LABEL NOT NULL, id LABEL NOT NULL, process text, PRIMARY KEY (namespace, id));
  CREATE TABLE $.sent_signals (
    seq ROW, created_at bigint NOT NULL, namespace LABEL NOT NULL, execution LABEL NOT NULL, id LABEL NOT NULL, name text NOT NULL,
    payload text NOT NULL, PRIMARY KEY (namespace, seq));
  ALTER TABLE $.steps ALTER note SET NOT NULL;
  ALTER INDEX $.executions_pkey SET (deduplicate_items = off);
  CREATE INDEX executions_due ON $.executions (namespace, ensemble, version, due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX executions_to_cancel ON $.executions (owner) WHERE cancel_at IS NOT NULL AND owner IS NOT NULL;
  CREATE INDEX executions_signalled ON $.executions (owner) WHERE signalled_at IS NOT NULL AND owner IS NOT NULL;
  CREATE INDEX executions_slots ON $.executions (namespace, account) WHERE account IS NOT NULL AND owner IS NOT NULL;
  CREATE INDEX executions_by_root ON $.executions (root_id, namespace) WHERE root_id IS NOT NULL;
  CREATE INDEX executions_by_parent ON $.executions (parent_id, namespace, created_at, id) WHERE parent_id IS NOT NULL;
  CREATE UNIQUE INDEX executions_by_key ON $.executions (idempotency_key, namespace) WHERE idempotency_key IS NOT NULL;
  CREATE INDEX executions_by_creation ON $.executions (namespace, created_at, id)
    WITH (deduplicate_items = off) WHERE created_at IS NOT NULL;
  CREATE INDEX executions_by_ensemble ON $.executions (ensemble, namespace, status, created_at, id)
    WITH (deduplicate_items = off);
  CREATE INDEX executions_by_status ON $.executions (namespace, status, created_at, id)
    WITH (deduplicate_items = off) WHERE status <> 'completed';
  CREATE INDEX executions_by_error ON $.executions (left(substring(error from '"code":"([^"]*)"'), 128), namespace, created_at, id)
    WHERE error IS NOT NULL;
  CREATE INDEX steps_runs ON $.steps (execution, seq) WHERE NOT note;
  CREATE INDEX steps_notes ON $.steps (execution, seq) WHERE note;
  CREATE INDEX kv_by_expiry ON $.kv (namespace, expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX deliveries_by_execution ON $.deliveries (execution, namespace, id);
  CREATE INDEX deliveries_by_ensemble ON $.deliveries (ensemble, namespace, id);
  CREATE INDEX deliveries_by_status ON $.deliveries (status, namespace, id) WHERE status <> 'succeeded';`,
});

/**
 * `start` asks for an execution from SQL: a document, of which a process makes the execution after the commit. `hash36` is `hash32` of the
 * drivers, to base 36: the name of the channel on which processes listen.
 */
const START_FUNCTION = `
  CREATE FUNCTION $.hash36(given text) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog AS '
    DECLARE
      hash bigint := 2166136261;
      made text := '''';
    BEGIN
      FOR i IN 1 .. length(given) LOOP
        hash := ((hash # ascii(substr(given, i, 1))) * 16777619) % 4294967296;
      END LOOP;
      LOOP
        made := substr(''0123456789abcdefghijklmnopqrstuvwxyz'', (hash % 36)::integer + 1, 1) || made;
        hash := hash / 36;
        EXIT WHEN hash = 0;
      END LOOP;
      RETURN made;
    END';
  CREATE FUNCTION $.start(name text, input jsonb DEFAULT '{}', key text DEFAULT NULL, namespace text DEFAULT 'default')
    RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog AS '
    #variable_conflict use_column
    DECLARE
      now_ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
      made text := ''exec_'';
      label text := ''0:'' || start.key;
      known text;
    BEGIN
      IF start.name IS NULL OR start.name !~ ''^[A-Za-z][A-Za-z0-9_-]{0,63}\\Z'' THEN
        RAISE EXCEPTION ''start: name must be the name of an ensemble, not %'', coalesce(quote_literal(left(start.name, 80)), ''NULL'')
          USING ERRCODE = ''22023'';
      ELSIF start.input IS NULL OR jsonb_typeof(start.input) <> ''object'' THEN
        RAISE EXCEPTION ''start: input must be a JSON object'' USING ERRCODE = ''22023'';
      ELSIF start.key = '''' OR length(start.key) > 255 THEN
        RAISE EXCEPTION ''start: key must have 1 to 255 characters'' USING ERRCODE = ''22023'';
      ELSIF start.namespace IS NULL THEN
        RAISE EXCEPTION ''start: namespace must be that of the storage'' USING ERRCODE = ''22023'';
      END IF;
      SELECT id INTO known FROM $.executions WHERE namespace = start.namespace AND idempotency_key = label;
      IF known IS NOT NULL THEN RETURN known; END IF;
      FOR i IN REVERSE 9 .. 0 LOOP
        made := made || substr(''0123456789ABCDEFGHJKMNPQRSTVWXYZ'', ((now_ms >> (i * 5)) & 31)::integer + 1, 1);
      END LOOP;
      FOR i IN 0 .. 15 LOOP
        made := made || substr(''0123456789ABCDEFGHJKMNPQRSTVWXYZ'', (get_byte(uuid_send(gen_random_uuid()), 15) & 31) + 1, 1);
      END LOOP;
      INSERT INTO $.documents (version, updated_at, namespace, kind, name, tag, value)
      VALUES (1, now_ms, start.namespace, ''start'', coalesce(label, made), '''',
        jsonb_build_object(''id'', made, ''ensemble'', start.name, ''input'', start.input, ''key'', start.key)::text)
      ON CONFLICT DO NOTHING;
      IF NOT FOUND THEN
        SELECT value::jsonb ->> ''id'' INTO known FROM $.documents WHERE namespace = start.namespace AND kind = ''start'' AND name = label;
      END IF;
      -- Meanwhile, a process may have made the execution.
      IF label IS NOT NULL AND known IS NULL THEN
        SELECT id INTO known FROM $.executions WHERE namespace = start.namespace AND idempotency_key = label;
        IF known IS NOT NULL THEN
          DELETE FROM $.documents WHERE namespace = start.namespace AND kind = ''start'' AND name = label;
        END IF;
      END IF;
      IF known IS NULL THEN
        PERFORM pg_notify(''ensemble_'' || $.hash36(trim(BOTH ''"'' FROM ''$'')) || ''_'' || $.hash36(start.namespace), '''');
      END IF;
      RETURN coalesce(known, made);
    END';`;

/** Released migrations never change; a new version is a new entry. `$` stands for the schema's name. */
export const MIGRATIONS: readonly string[] = [
  FIRST,
  `${LIMITS}
  DROP INDEX $.executions_due;
  CREATE INDEX executions_due ON $.executions (namespace, ensemble, version, due_at) WHERE due_at IS NOT NULL AND queue IS NULL;
  CREATE FUNCTION $.arrive() RETURNS trigger LANGUAGE plpgsql AS '
    BEGIN
      INSERT INTO $.arrivals (due_at, freed, namespace, queue, limits) VALUES (NEW.due_at, false, NEW.namespace, NEW.queue, NEW.limits);
      IF NEW.start_by IS NOT NULL AND NEW.status = ''queued'' THEN
        INSERT INTO $.arrivals (due_at, freed, namespace, queue, limits, execution)
        VALUES (NEW.start_by, false, NEW.namespace, NEW.queue, NEW.limits, NEW.id);
      END IF;
      RETURN NULL;
    END';
  CREATE FUNCTION $.free() RETURNS trigger LANGUAGE plpgsql AS '
    BEGIN
      INSERT INTO $.arrivals (due_at, freed, namespace, queue, limits)
      VALUES (0, true, NEW.namespace, concat_ws('','', OLD.queue, CASE WHEN NEW.finished_at IS NOT NULL THEN NEW.kept_until_end END), NEW.limits);
      RETURN NULL;
    END';
  CREATE TRIGGER arrive AFTER INSERT OR UPDATE OF due_at ON $.executions FOR EACH row
    WHEN (NEW.queue IS NOT NULL AND NEW.due_at IS NOT NULL AND NEW.paused_from IS NULL) EXECUTE FUNCTION $.arrive();
  CREATE TRIGGER free AFTER UPDATE OF owner ON $.executions FOR EACH row
    WHEN (OLD.owner IS NOT NULL AND NEW.owner IS NULL
      AND (OLD.queue IS NOT NULL OR (NEW.kept_until_end IS NOT NULL AND NEW.finished_at IS NOT NULL))) EXECUTE FUNCTION $.free();
  ${START_FUNCTION}`,
  TALLIES,
];

/** The first half of the key of a schema's advisory locks. The second half is a worker's `ref`, or 0 for migrations. */
export function lockKey(schema: string): number {
  return hash32(schema) >>> 1;
}

/**
 * Brings the schema to the newest version in one transaction. Several processes may do this at the same time; each
 * waits for the one before.
 *
 * @throws NOT_CONFIGURED when the schema is newer than this library or older than its first release, or the database can't store all text; then nothing
 *   is written
 */
export async function migrate(
  client: SqlClient,
  schema: string,
  migrations: readonly string[] = MIGRATIONS,
): Promise<void> {
  const newest = newestVersion(migrations);
  const read = versionReader(schema, newest);
  if ((await read(client)) === newest) return;
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
    for (const step of stepsAfter(version ?? 0, migrations)) await transaction.exec(toPostgres(step, schema));
    await transaction.exec(`UPDATE "${schema}".schema_version SET version = ${newest}`);
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
    refuseOlder(`postgresStorage: the schema ${schema}`, version);
    if (version <= newest) return version;
    const message = `postgresStorage: the schema ${schema} was written by a newer version of ensemble-orchestrator (its version is ${version}, this library knows up to ${newest}); update the library, or name another schema. Nothing was changed`;
    throw new OrchestratorError('NOT_CONFIGURED', message, { details: { version, supported: newest } });
  };
}
