/** The driver for a transaction that the app has begun, on the connection of the app. */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import type { SqlClient, SqlParam, SqlResult, SqlRow, SqlRunner, Statement } from './driver.ts';
import { AS_TEXT, toResult } from './pg-driver.ts';
import { type PgliteRunner, runText } from './pglite-driver.ts';
import { type RawRows, toRow } from './postgres-js-driver.ts';

/** What runs one statement. Parameters are scalars, so that no client writes them in its own way. */
type Query = (statement: Statement, params: readonly SqlParam[]) => Promise<SqlResult>;

interface Handle {
  readonly query: Query;
  /** Whether the object stands for one transaction, and not for a connection that has one after the other. */
  readonly isTransaction: boolean;
}

type Fields = Readonly<Record<string, unknown>>;
type Method = (...args: unknown[]) => Promise<never>;

/**
 * @param given - a client of `pg`, the `sql` of a transaction of postgres.js, a transaction of PGlite, Drizzle or Kysely, or the client of an
 *   interactive transaction of Prisma
 * @throws INVALID_REQUEST for anything else, for a client that is not in a transaction, and for a transaction that has ended
 */
export type OpenTransaction = (given: unknown) => Promise<SqlClient>;

/** @param schema - that of the storage */
export function createCallerTransactions(schema: string): OpenTransaction {
  // A handle that is kept after its end would write in the next transaction of its connection.
  const begun = new WeakMap<object, string>();
  return (given) => callerTransaction(given, schema, begun);
}

/** @param begun - the transaction in which each handle was used first */
async function callerTransaction(given: unknown, schema: string, begun: WeakMap<object, string>): Promise<SqlClient> {
  const { query: run, isTransaction } = handleOf(given);
  // Outside of a transaction, each statement has one of its own.
  const [first, second] = [await transactionId(run, schema), await transactionId(run, schema)];
  if (first !== second)
    throw refused('the client is not in a transaction: begin one, and pass what the client gives for it');
  if (isTransaction) {
    const known = begun.get(given as object);
    if (known !== undefined && known !== first) throw refused('the transaction has ended: this one is another');
    begun.set(given as object, first);
  }
  return clientOf(run);
}

/** @param run - runs statements in a transaction that is open: what the storage does as a whole is undone alone */
export function clientOf(run: SqlRunner['run']): SqlClient {
  const control = (text: string) => run({ name: '', text, columns: [] }, []);
  const unsupported = async (): Promise<never> => {
    throw new OrchestratorError('INTERNAL', 'a transaction that is open runs statements only');
  };
  return {
    run,
    sessionLocks: false,
    async transaction(work, before) {
      const on = { run, table: unsupported, exec: unsupported };
      await control('SAVEPOINT ensemble_work');
      try {
        await before?.(on);
        const result = await work(on);
        await control('RELEASE SAVEPOINT ensemble_work');
        return result;
      } catch (error) {
        await control('ROLLBACK TO SAVEPOINT ensemble_work').catch(() => undefined);
        throw error;
      }
    },
    openSession: unsupported,
    async close() {},
  };
}

const XID: Statement = {
  name: '',
  text: 'SELECT pg_current_xact_id()::text AS xid, to_regnamespace($1)::text AS found',
  columns: ['xid', 'found'],
};

/** @throws INVALID_REQUEST for another database */
async function transactionId(run: Query, schema: string): Promise<string> {
  const [row] = (await run(XID, [schema])).rows;
  if (row?.found == null) throw refused(`its database has no schema \`${schema}\`, so it is not that of the storage`);
  return String(row.xid);
}

function handleOf(given: unknown): Handle {
  if ((typeof given !== 'object' && typeof given !== 'function') || given === null) throw unknownHandle();
  const fields = given as Fields;
  if (hasMethod(fields, 'executeQuery')) return ofKysely(fields);
  if (hasMethod(fields, '$queryRawUnsafe')) return ofPrisma(fields);
  const inner = (fields.session as Fields | undefined)?.client;
  // Drizzle: the transaction has the client of its driver.
  if (inner !== undefined && inner !== null) return { ...handleOf(inner), isTransaction: true };
  if (hasMethod(fields, 'unsafe')) return ofPostgresJs(fields);
  if (hasMethod(fields, 'query') && hasMethod(fields, 'rollback'))
    return { query: runText(fields as unknown as PgliteRunner), isTransaction: true };
  if (hasMethod(fields, 'query') && hasMethod(fields, 'connect') && !('totalCount' in fields)) return ofPg(fields);
  throw unknownHandle();
}

function ofPg(client: Fields): Handle {
  const query: Query = async ({ text }, params) => {
    return toResult(await (client.query as Method).call(client, { text, values: [...params], types: AS_TEXT }));
  };
  return { query, isTransaction: false };
}

function ofPostgresJs(sql: Fields): Handle {
  const query: Query = async ({ text, columns }, params) => {
    const pending = (sql.unsafe as (...args: unknown[]) => { raw(): Promise<unknown> })(text, [...params]).raw();
    const rows = (await pending) as RawRows;
    return { rows: rows.map((row) => toRow(row, columns)), count: rows.count ?? 0 };
  };
  return { query, isTransaction: true };
}

function ofKysely(given: Fields): Handle {
  // A plugin may rename columns.
  const transaction = hasMethod(given, 'withoutPlugins') ? (given.withoutPlugins as () => Fields)() : given;
  const query: Query = async ({ text: sql }, params) => {
    const parameters = [...params];
    const node = { kind: 'RawNode', sqlFragments: [sql], parameters: [] };
    const compiled = { sql, parameters, query: node, queryId: { queryId: 'ensemble' } };
    const answer = await (transaction.executeQuery as Method).call(transaction, compiled);
    const { rows, numAffectedRows = 0 } = answer as { readonly rows: readonly Fields[]; numAffectedRows?: bigint };
    return { rows: rows.map(toTexts), count: rows.length || Number(numAffectedRows) };
  };
  return { query, isTransaction: true };
}

function ofPrisma(client: Fields): Handle {
  const query: Query = async ({ text, columns }, params) => {
    // A statement without an answer fails as a query.
    const isQuery = columns.length > 0;
    const run = client[isQuery ? '$queryRawUnsafe' : '$executeRawUnsafe'] as Method;
    const answer: unknown = await run.call(client, text, ...params);
    if (!isQuery) return { rows: [], count: Number(answer) };
    const rows = (answer as readonly Fields[]).map(toTexts);
    return { rows, count: rows.length };
  };
  return { query, isTransaction: true };
}

function toTexts(row: Fields): SqlRow {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toText(value)]));
}

function toText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'boolean') return value ? 't' : 'f';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function hasMethod(fields: Fields, name: string): boolean {
  return typeof fields[name] === 'function';
}

function unknownHandle(): OrchestratorError {
  return refused(
    'it must be a client of `pg` that has begun one, the `sql` of `sql.begin` of postgres.js, the transaction of PGlite, Drizzle or Kysely, or the client of an interactive transaction of Prisma',
  );
}

function refused(why: string): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', `\`transaction\`: ${why}`);
}
