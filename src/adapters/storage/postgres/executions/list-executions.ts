/** Lists executions: finds them by one index, then reads only the rows that it returns. */

import {
  EXECUTION_STATUSES,
  type ExecutionStatus,
  LISTED_VALUE_BYTES,
  MAX_MATCHES,
} from '../../../../engine/execution/execution.ts';
import type { ExecutionQuery } from '../../../../engine/storage/storage.port.ts';
import { readNumber } from '../../sql/columns.ts';
import { boundsOf, MAX_COUNTED, refuseManyMatches, sortsOf, textRange, type Walk, walksOf } from '../../sql/listing.ts';
import { unresolvedOf } from '../../sql/read-execution.ts';
import {
  limitForPlanner,
  type SqlClient,
  type SqlParam,
  type SqlRow,
  type SqlRunner,
  statement,
} from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';
import { computedColumn, RECORD } from './record-columns.ts';

/**
 * The status is a literal in a statement, because the index of executions that have not completed serves only such
 * statements.
 */
const STATUSES: Readonly<Record<ExecutionStatus, string>> = {
  ...{ queued: 'queued', running: 'running', waiting: 'waiting', paused: 'paused', completed: 'completed' },
  ...{ failed: 'failed', timed_out: 'timed_out', cancelled: 'cancelled' },
};
/** Instants before and after all others. */
const LEAST = Number.MIN_SAFE_INTEGER;
const GREATEST = Number.MAX_SAFE_INTEGER;
/** As the index by error has it. */
const ERROR_CODE = `left(substring(e.error from '"code":"([^"]*)"'), 128)`;
/** A query whose filters may be undefined. */
type Listing = { readonly [K in keyof ExecutionQuery]: ExecutionQuery[K] | undefined };
/** Adds a parameter to a statement. @returns its place, such as `$2` */
type Param = (value: SqlParam) => string;
const LISTED = [...RECORD, 'input_omitted', 'output_omitted'];

export function executionList(
  client: SqlClient,
  names: Names,
  namespace: string,
): (query: ExecutionQuery) => Promise<readonly SqlRow[]> {
  const { executions, tags } = names;
  const listed = LISTED.map((column) => computedColumn(column, names) ?? listedColumn(column)).join(', ');

  /**
   * Executions by the index that answers one filter, in the order of a list; those of an ensemble status by status. A count needs no
   * order, but without that of the index the planner may read the whole table.
   * Expressions such as `e.ensemble || ''` keep the planner from the index of another filter.
   * @param columns - of the execution `e`. Without columns, the executions are only counted, in the order of the index
   */
  const find = (walk: Walk, query: Listing, param: Param, limit: string, columns?: string): string => {
    const { ensemble, status, parentId, tag, search, errorCode, unresolved } = query;
    const { createdAt, id, end, follows, until, sorts } = boundsOf(query, LEAST, GREATEST);
    const [as, byStatus] = [walk === 'tag' ? 't' : 'e', walk === 'ensemble' && columns !== undefined];
    const by = (filter: Walk, column: string) => (filter === walk ? `e.${column}` : `(e.${column} || '')`);
    let from = walk === 'tag' ? `${tags} t ${rowOf(executions, 't')}` : `${executions} e`;
    if (search !== undefined) from = `(${matchingIds(names, search, param)}) x ${rowOf(executions, 'x')}`;
    const where = [
      `${as}.namespace = $1`,
      `(${as}.created_at, ${as}.id) ${follows} (${param(createdAt)}::bigint, ${param(toTextColumn(id))})`,
      `${as}.created_at ${until} ${param(end)}::bigint`,
      ...(ensemble === undefined ? [] : [`${by('ensemble', 'ensemble')} = ${param(toTextColumn(ensemble))}`]),
      ...(parentId === undefined ? [] : [`${by('parentId', 'parent_id')} = ${param(toTextColumn(parentId))}`]),
      ...(errorCode === undefined ? [] : [hasError(walk === 'error', param(toTextColumn(errorCode)))]),
      ...(unresolved ? [walk === 'unresolved' ? unresolvedOf('e.') : `(${unresolvedOf('e.')}) IS TRUE`] : []),
      ...(byStatus ? ['e.status = s.status'] : []),
      ...(byStatus || status === undefined
        ? []
        : [`${by(walk === 'ensemble' ? walk : 'status', 'status')} = '${STATUSES[status]}'`]),
      ...(tag === undefined ? [] : [walk === 'tag' ? `t.tag = ${param(tag)}` : hasTag(tags, param(tag))]),
    ];
    const ordered = walk === 'ensemble' && !byStatus ? ['status', 'created_at', 'id'] : ['created_at', 'id'];
    const order = `ORDER BY ${ordered.map((column) => `${as}.${column} ${sorts}`).join(', ')}`;
    const found = `SELECT ${columns ?? '1'} FROM ${from} WHERE ${where.join(' AND ')} ${order} LIMIT ${limit}`;
    if (!byStatus) return found;
    const statuses = (status === undefined ? EXECUTION_STATUSES : [status]).map((one) => `'${STATUSES[one]}'`);
    return `SELECT f.* FROM unnest(ARRAY[${statuses.join(', ')}]) s(status) CROSS JOIN LATERAL (${found}) f`;
  };

  const run = async (columns: readonly string[], text: (param: Param) => string, on: SqlRunner = client) => {
    const params: SqlParam[] = [namespace];
    const sql = text((value) => `$${params.push(value)}`);
    return (await on.run(statement(sql, columns), params)).rows;
  };

  const count = async (walk: Walk, query: ExecutionQuery): Promise<number> => {
    const { tag, status, ensemble, errorCode, unresolved, ...bounds } = query;
    const only = {
      ...{ tag: { tag }, status: { status }, ensemble: { ensemble, status }, error: { errorCode } },
      unresolved: { unresolved },
    }[walk as 'tag'];
    const entries = (param: Param) => find(walk, { ...bounds, ...only }, param, `${MAX_COUNTED}`);
    const [row = {}] = await run(['entries'], (param) => `SELECT count(*) AS entries FROM (${entries(param)}) c`);
    return readNumber(row, 'entries', 'a count');
  };

  const shortestOf = async (query: ExecutionQuery): Promise<Walk> => {
    const walks = walksOf(query);
    let [best] = walks;
    if (walks.length === 1) return best;
    let entries = Number.POSITIVE_INFINITY;
    for (const walk of walks) {
      const counted = await count(walk, query);
      if (counted < entries) [best, entries] = [walk, counted];
    }
    return best;
  };

  return async (query) => {
    const { search } = query;
    if (search !== undefined) {
      const [row = {}] = await run(['ids', 'tags'], (param) => countMatches(names, search, param));
      refuseManyMatches(search, readNumber(row, 'ids', 'a count'), readNumber(row, 'tags', 'a count'));
    }
    const walk = await shortestOf(query);
    const page = (param: Param) => {
      const limit = `${param(query.limit)}::bigint`;
      const most = limitForPlanner(query.limit);
      if (walk !== 'search' && walk !== 'ensemble')
        return `SELECT * FROM (${find(walk, query, param, most, listed)}) f LIMIT ${limit}`;
      // These are sorted, so their long columns are read after that.
      const found = find(walk, query, param, most, 'e.created_at, e.id');
      const sorts = sortsOf(query);
      return `SELECT ${listed} FROM (SELECT * FROM (${found}) m ORDER BY created_at ${sorts}, id ${sorts} LIMIT ${limit}) f
        ${rowOf(executions, 'f')}
        ORDER BY f.created_at ${sorts}, f.id ${sorts}`;
    };
    if (walk !== 'search') return run(LISTED, page);
    // With up to 10,000 matches, the server would compile the statement, which takes longer than the search.
    return client.transaction(async (on) => {
      await on.exec('SET LOCAL jit = off');
      return run(LISTED, page, on);
    });
  };
}

/** The execution `e` that an entry of another table or list names. */
function rowOf(executions: string, from: string): string {
  return `CROSS JOIN LATERAL (SELECT * FROM ${executions} WHERE namespace = $1 AND id = ${from}.id LIMIT 1) e`;
}

function countMatches({ executions, tags }: Names, search: string, param: Param): string {
  const [from, to] = textRange(search).map(param);
  const most = (table: string, column: string) => `(SELECT count(*) FROM (
    SELECT FROM ${table} WHERE namespace = $1 AND ${column} >= ${from} AND ${column} < ${to} LIMIT ${MAX_MATCHES + 1}) m)`;
  return `SELECT ${most(executions, 'id')} AS ids, ${most(tags, 'tag')} AS tags`;
}

/** The ids of the executions whose id, or one of whose tags, begins with a text. */
function matchingIds({ executions, tags }: Names, search: string, param: Param): string {
  const [from, to] = textRange(search).map(param);
  return `SELECT id FROM ${executions} WHERE namespace = $1 AND id >= ${from} AND id < ${to}
    UNION SELECT id FROM ${tags} WHERE namespace = $1 AND tag >= ${from} AND tag < ${to}`;
}

function hasTag(tags: string, tag: string): string {
  return `(SELECT true FROM ${tags} g WHERE g.namespace = $1 AND g.tag = ${tag} AND g.created_at = e.created_at AND g.id = e.id)`;
}

function hasError(byIndex: boolean, code: string): string {
  return byIndex ? `e.error IS NOT NULL AND ${ERROR_CODE} = ${code}` : `(${ERROR_CODE} || '') = ${code}`;
}

/** A column of a list. A large value is not read; `input_omitted` and `output_omitted` say so. */
function listedColumn(column: string): string {
  const [value = column, omitted] = column.split('_omitted');
  if (omitted !== undefined) return `octet_length(e.${value}) > ${LISTED_VALUE_BYTES} AS ${column}`;
  if (column !== 'input' && column !== 'output') return `e.${column}`;
  return `CASE WHEN octet_length(e.${column}) <= ${LISTED_VALUE_BYTES} THEN e.${column} END AS ${column}`;
}
