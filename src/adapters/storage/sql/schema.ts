/**
 * The schema of an SQL store, written as Postgres takes it; `$` stands for the schema's name. SQLite gets the same tables with types of
 * its own. Indexes that only one database has are in its `migrations.ts`.
 *
 * Columns of a fixed width come first and long texts last: SQLite reads a column by passing all columns before it.
 */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import { HAS_GROUP, HAS_NO_GROUP } from './queues/queue-tables.ts';

/** The version of the first schema. Stores that an earlier one made are refused: no release had it. */
export const FIRST_VERSION = 17;

/** @param steps - the first makes a new store, each other one brings a store one version on */
export function newestVersion(steps: readonly string[]): number {
  return FIRST_VERSION - 1 + steps.length;
}

/** The steps that are left for a store of this version; 0 for an empty one. */
export function stepsAfter(version: number, steps: readonly string[]): readonly string[] {
  return version === 0 ? steps : steps.slice(version - FIRST_VERSION + 1);
}

/** @param store - what error messages call it @throws NOT_CONFIGURED for a version before the first */
export function refuseOlder(store: string, version: number): void {
  if (version >= FIRST_VERSION) return;
  const message = `${store} was written before the first release of ensemble-orchestrator (its version is ${version}, this library reads from ${FIRST_VERSION}); name another one. Nothing was changed`;
  throw new OrchestratorError('NOT_CONFIGURED', message, { details: { version, supported: FIRST_VERSION } });
}

const LARGE = 'WITH (autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000)';
const CHANGED = 'WITH (fillfactor = 50)';

/**
 * `owner`, `slots` and the mark of a cancellation are columns of each database: see {@link FirstSchema}.
 * `retried` says that another execution has the key of its retry, or that it is a dry run, which nobody retries.
 */
const EXECUTIONS = `
    ref ROW,
    created_at bigint NOT NULL, started_at bigint, due_at bigint, deadline_at bigint, finished_at bigint, resumed_at bigint,
    claimed_at bigint, signalled_at bigint, duration double precision,
    epoch integer NOT NULL, recoveries integer NOT NULL DEFAULT 0, agents integer, signals integer, blame integer, blamed_at integer,
    namespace LABEL NOT NULL, id LABEL NOT NULL, ensemble LABEL NOT NULL, version LABEL NOT NULL, status LABEL NOT NULL,
    retried boolean, parent_id LABEL, root_id LABEL, idempotency_key LABEL, account LABEL, seed text NOT NULL, retry_of text,
    started_by text NOT NULL, tags text, waits_for text, handover text, error text, output text, input text NOT NULL`;

/** What only one of the databases has. */
export interface FirstSchema {
  /** Columns of `executions`. */
  readonly executions: string;
  /** The other tables and the indexes. */
  readonly more: string;
}

export function firstSchema({ executions, more }: FirstSchema): string {
  return `
  CREATE TABLE $.executions (${executions}, ${EXECUTIONS}, PRIMARY KEY (namespace, id)) ${LARGE};
  CREATE TABLE $.steps (
    seq ROW, execution bigint NOT NULL, started_at bigint NOT NULL, retry_at bigint, duration double precision NOT NULL,
    attempts integer NOT NULL, note boolean, key LABEL NOT NULL, name text NOT NULL, status text NOT NULL, error text,
    output text NOT NULL, PRIMARY KEY (execution, key)) ${LARGE};
  CREATE TABLE $.signals (
    seq ROW, execution bigint NOT NULL, created_at bigint NOT NULL, id LABEL NOT NULL, name LABEL NOT NULL, payload text NOT NULL,
    PRIMARY KEY (execution, id)) ${LARGE};
  CREATE TABLE $.tags (
    created_at bigint NOT NULL, namespace LABEL NOT NULL, tag LABEL NOT NULL, id LABEL NOT NULL,
    PRIMARY KEY (namespace, tag, created_at, id)) /* small */ ${LARGE};
  CREATE TABLE $.definitions (
    namespace LABEL NOT NULL, version LABEL NOT NULL, needs text NOT NULL, definition text NOT NULL, PRIMARY KEY (namespace, version));
  CREATE TABLE $.states (
    version integer NOT NULL, updated_at bigint NOT NULL, namespace LABEL NOT NULL, ensemble LABEL NOT NULL, value text NOT NULL,
    PRIMARY KEY (namespace, ensemble));
  CREATE TABLE $.schedules (
    version integer NOT NULL, updated_at bigint NOT NULL, namespace LABEL NOT NULL, name LABEL NOT NULL, value text NOT NULL,
    PRIMARY KEY (namespace, name)) /* small */;
  CREATE TABLE $.documents (
    version integer NOT NULL, updated_at bigint NOT NULL, expires_at bigint, namespace LABEL NOT NULL, kind LABEL NOT NULL,
    name LABEL NOT NULL, tag LABEL NOT NULL, value text NOT NULL, PRIMARY KEY (namespace, kind, name)) /* small */;
  CREATE TABLE $.deliveries (
    created_at bigint NOT NULL, due_at bigint, notification integer NOT NULL, attempts integer NOT NULL DEFAULT 0,
    attempts_before integer NOT NULL DEFAULT 0, namespace LABEL NOT NULL, id LABEL NOT NULL, execution LABEL NOT NULL,
    ensemble LABEL NOT NULL, version LABEL NOT NULL, receiver LABEL NOT NULL, event text NOT NULL,
    status LABEL NOT NULL DEFAULT 'pending', log text NOT NULL DEFAULT '[]', body text NOT NULL, PRIMARY KEY (namespace, id))
    WITH (fillfactor = 90, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_threshold = 1000);
  CREATE TABLE $.tokens (
    created_at bigint NOT NULL, expires_at bigint, last_used bigint, namespace LABEL NOT NULL, id LABEL NOT NULL, digest LABEL NOT NULL,
    name text NOT NULL, scopes text NOT NULL, plan text NOT NULL, last4 text NOT NULL, PRIMARY KEY (namespace, id),
    UNIQUE (namespace, digest));
  CREATE TABLE $.kv (
    expires_at bigint, namespace LABEL NOT NULL, key LABEL NOT NULL, value text NOT NULL, PRIMARY KEY (namespace, key)) /* small */;
  CREATE TABLE $.objects (
    updated_at bigint NOT NULL, namespace LABEL NOT NULL, key LABEL NOT NULL, content_type text NOT NULL, content bytea NOT NULL,
    PRIMARY KEY (namespace, key));
  CREATE TABLE $.charges (
    charged bigint NOT NULL, max bigint, namespace LABEL NOT NULL, account LABEL NOT NULL, period LABEL NOT NULL,
    CONSTRAINT charges_within_quota CHECK (charged <= max), PRIMARY KEY (namespace, account, period)) /* small */ ${CHANGED};
  CREATE UNLOGGED TABLE $.rates (
    ends_at bigint NOT NULL, namespace LABEL NOT NULL, key LABEL NOT NULL, requests text NOT NULL,
    PRIMARY KEY (namespace, key)) /* small */ ${CHANGED};
  CREATE INDEX executions_unresolved ON $.executions (namespace, created_at, id)
    WHERE status IN ('failed', 'timed_out') AND retried IS NULL;
  CREATE INDEX documents_by_expiry ON $.documents (expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX signals_by_name ON $.signals (execution, name, seq);
  CREATE INDEX deliveries_due ON $.deliveries (namespace, receiver, due_at) WHERE due_at IS NOT NULL;
  ${more}`;
}

/**
 * Limits of executions. `queue` is what `limits` of an execution says without its numbers: executions with the same one wait in a row of
 * `queues`. `arrivals` says which queue is to be looked at from when on; triggers write it, so that no write that frees an execution or
 * makes it due is missed. A row of `slots` counts while its execution is held under its epoch; `step` is the key of a step that has one.
 */
export const LIMITS = `
  ALTER TABLE $.executions ADD COLUMN queue LABEL;
  ALTER TABLE $.executions ADD COLUMN limits text;
  ALTER TABLE $.executions ADD COLUMN queue_after_begin LABEL;
  ALTER TABLE $.executions ADD COLUMN kept_until_end LABEL;
  ALTER TABLE $.executions ADD COLUMN start_by bigint;
  ALTER TABLE $.executions ADD COLUMN paused integer;
  ALTER TABLE $.executions ADD COLUMN paused_from LABEL;
  CREATE INDEX executions_paused ON $.executions (namespace, ensemble) WHERE paused IS NOT NULL;
  CREATE INDEX executions_to_pause ON $.executions (namespace, owner) WHERE paused IS NOT NULL AND owner IS NOT NULL;
  CREATE INDEX executions_in_queue ON $.executions (namespace, queue, due_at, ref) WHERE queue IS NOT NULL AND due_at IS NOT NULL;
  CREATE TABLE $.queues (
    blocked_at bigint, ready boolean NOT NULL, namespace LABEL NOT NULL, id LABEL NOT NULL, blocked_by LABEL,
    PRIMARY KEY (namespace, id)) /* small */ ${CHANGED};
  CREATE INDEX queues_ready ON $.queues (namespace, id) WHERE ready;
  CREATE INDEX queues_blocked ON $.queues (namespace, blocked_by, blocked_at) WHERE blocked_by IS NOT NULL AND ${HAS_NO_GROUP};
  CREATE INDEX queues_blocked_of_groups ON $.queues (namespace, blocked_by, id) WHERE blocked_by IS NOT NULL AND ${HAS_GROUP};
  CREATE TABLE $.limits (
    since bigint NOT NULL, max integer NOT NULL, burst integer, period bigint, namespace LABEL NOT NULL, id LABEL NOT NULL,
    name LABEL NOT NULL, used text, PRIMARY KEY (namespace, id)) /* small */ ${CHANGED};
  CREATE TABLE $.slots (
    epoch integer NOT NULL, held boolean, listed boolean, namespace LABEL NOT NULL, limit_id LABEL NOT NULL, execution LABEL NOT NULL,
    step LABEL NOT NULL DEFAULT '', PRIMARY KEY (namespace, limit_id, execution, step)) /* small */;
  CREATE TABLE $.arrivals (
    seq ROW, due_at bigint NOT NULL, freed boolean NOT NULL, namespace LABEL NOT NULL, queue LABEL NOT NULL, limits text NOT NULL,
    execution LABEL, PRIMARY KEY (seq));
  CREATE INDEX arrivals_due ON $.arrivals (namespace, due_at) WHERE NOT freed;
  CREATE INDEX arrivals_freed ON $.arrivals (namespace, due_at) WHERE freed;`;

/**
 * Counts of ends. A row of `ends` has a line for each end of a commit, until they are added up in the tally of their minute. `length` is that
 * of a minute, an hour or a day, in ms; a row of length 0 is written first by all that add up.
 */
export const TALLIES = `
  CREATE TABLE $.ends (seq ROW, namespace LABEL NOT NULL, body text NOT NULL, PRIMARY KEY (namespace, seq));
  CREATE TABLE $.tallies (
    length bigint NOT NULL, at bigint NOT NULL, namespace LABEL NOT NULL, ensemble LABEL NOT NULL, body text NOT NULL,
    PRIMARY KEY (namespace, length, at, ensemble)) /* small */ ${CHANGED};`;

/** A schema as Postgres takes it. @param name - of the schema */
export function toPostgres(schema: string, name: string): string {
  return schema
    .replace(/\bROW\b/g, 'bigint GENERATED ALWAYS AS IDENTITY')
    .replace(/\bLABEL\b/g, 'text COLLATE "C"')
    .replaceAll('$', `"${name}"`);
}

const SQLITE_TYPES: Readonly<Record<string, string>> = { LABEL: 'TEXT', text: 'TEXT', bytea: 'BLOB' };

/** A schema as SQLite takes it: all names begin with `ensemble_`, so that an app can have the tables in its own file. */
export function toSqlite(schema: string): string {
  return schema
    .split(';')
    .map((statement) =>
      // The primary key of a table with growing row numbers is the number.
      (/\bROW\b/.test(statement) ? statement.replace(/PRIMARY KEY(?= \()/g, 'UNIQUE') : statement)
        .replace(
          /\b(LABEL|text|bytea|bigint|integer|boolean|double precision)\b/g,
          (type) => SQLITE_TYPES[type] ?? 'INTEGER',
        )
        .replace(/\bROW\b/g, 'INTEGER PRIMARY KEY')
        .replace(/ WITH \([^)]*\)| UNLOGGED/g, '')
        .replace('/* small */', 'WITHOUT ROWID')
        .replaceAll('$.', 'ensemble_')
        .replace(/(INDEX) (?=\w+ ON)/g, '$1 ensemble_'),
    )
    .join(';');
}
