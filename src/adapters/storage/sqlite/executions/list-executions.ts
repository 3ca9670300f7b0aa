/** Lists executions: finds them by one index, then reads only the rows that it returns. */

import { LISTED_VALUE_BYTES, MAX_MATCHES } from '../../../../engine/execution/execution.ts';
import type { ExecutionQuery } from '../../../../engine/storage/storage.port.ts';
import { boundsOf, MAX_COUNTED, refuseManyMatches, sortsOf, textRange, type Walk, walksOf } from '../../sql/listing.ts';
import { unresolvedOf } from '../../sql/read-execution.ts';
import { prepareOnUse, type SqlConnection, type SqlRow, type SqlValue } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import { OPEN_OR_FAILED } from '../tables/names.ts';
import { ABOUT, byteLength } from './record-columns.ts';

/** A condition and its parameters. */
interface Part {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** Entries of one index in the order of a list. */
interface Range {
  readonly from: string;
  /** The table whose columns are in the order of the index. */
  readonly as: 'e' | 't';
  readonly where: Part;
}

const EXECUTIONS = 'ensemble_executions AS e';
const BY = `${EXECUTIONS} INDEXED BY ensemble_executions_`;
/** Greater than every number and text, also a damaged one. */
const AFTER_ALL = Uint8Array.of(255);
/** As the index by error has it. */
const ERROR_CODE = `substr(e.error, instr(e.error, '"code":"') + 8, instr(substr(e.error, instr(e.error, '"code":"') + 8), '"') - 1)`;
const NOTHING: Part = { sql: '', params: [] };

export function executionList(
  connection: SqlConnection,
  namespace: string,
): (query: ExecutionQuery) => readonly SqlRow[] {
  /** On whichever table it is: the rows of this namespace. */
  const here = `namespace = ${toLiteral(namespace)}`;
  const bytes = byteLength(connection);
  const listed = (
    column: string,
  ) => `CASE WHEN ${bytes(column)} <= ${LISTED_VALUE_BYTES} THEN ${column} END AS ${column},
    ${bytes(column)} > ${LISTED_VALUE_BYTES} AS ${column}_omitted`;
  const LISTED = `${ABOUT}, ${listed('output')}, ${listed('input')}`;
  const prepared = prepareOnUse(connection);

  const count = (walk: Walk, query: ExecutionQuery): number =>
    rangesOf(here, walk, query).reduce((sum, range) => {
      const { sql, params } = find(range, query, [], '1');
      const [row] = prepared(`SELECT count(*) AS entries FROM (${sql} LIMIT ${MAX_COUNTED})`).all(params);
      return sum + (row?.entries as number);
    }, 0);

  const shortestOf = (query: ExecutionQuery): Walk => {
    const walks = walksOf(query);
    if (walks.length === 1) return walks[0];
    const counted = walks.map((walk) => ({ walk, entries: count(walk, query) }));
    return counted.reduce((best, one) => (one.entries < best.entries ? one : best)).walk;
  };

  const checkMatches = (search: string) => {
    const [from, to] = textRange(search);
    const most = (table: string, column: string) => `(SELECT count(*) FROM (
      SELECT 1 FROM ${table} WHERE ${here} AND ${column} >= ? AND ${column} < ? LIMIT ${MAX_MATCHES + 1}))`;
    const sql = `SELECT ${most('ensemble_executions', 'id')} AS ids, ${most('ensemble_tags', 'tag')} AS tags`;
    const [row] = prepared(sql).all([from, to, from, to]);
    refuseManyMatches(search, row?.ids as number, row?.tags as number);
  };

  return (query) => {
    if (query.search !== undefined) checkMatches(query.search);
    const walk = shortestOf(query);
    const others = FILTERS.filter((filter) => filter !== walk).map((filter) => filterOf(here, filter, query));
    const { limit } = query;
    const sorts = sortsOf(query);
    const ranges = rangesOf(here, walk, query).map((range) => {
      const { sql, params } = find(range, query, others, 'e.ref AS found, e.created_at AS at, e.id AS name');
      const order = `ORDER BY ${range.as}.created_at ${sorts}, ${range.as}.id ${sorts} LIMIT ?`;
      return { sql: `${sql} ${order}`, params: [...params, limit] };
    });
    const { sql, params } = ranges.length === 1 ? (ranges[0] as Part) : merge(ranges, sorts, limit);
    const statement = prepared(`SELECT ${LISTED} FROM (${sql})
      CROSS JOIN ensemble_executions ON ref = found ORDER BY at ${sorts}, name ${sorts}`);
    return statement.all(params);
  };
}

const FILTERS = ['parentId', 'tag', 'status', 'ensemble', 'error', 'unresolved'] as const;
const INDEXES = {
  ...{ parentId: 'by_parent', ensemble: 'by_ensemble', error: 'by_error', created: 'by_creation' },
  unresolved: 'unresolved',
} as const;
const INDEXES_BY_STATUS = { status: 'by_status', ensemble: 'by_ensemble_status' } as const;

/** The condition of one filter on the execution `e`; nothing without this filter. */
function filterOf(here: string, filter: Walk, query: ExecutionQuery): Part {
  const { parentId, tag, status, ensemble, errorCode } = query;
  if (filter === 'parentId' && parentId !== undefined)
    return { sql: ' AND e.parent_id = ?', params: [toTextColumn(parentId)] };
  if (filter === 'ensemble' && ensemble !== undefined)
    return { sql: ' AND e.ensemble = ?', params: [toTextColumn(ensemble)] };
  if (filter === 'status' && status !== undefined) return { sql: ` AND e.status = ${toLiteral(status)}`, params: [] };
  if (filter === 'error' && errorCode !== undefined)
    return { sql: ` AND e.error IS NOT NULL AND ${ERROR_CODE} = ?`, params: [toTextColumn(errorCode)] };
  if (filter === 'unresolved' && query.unresolved) return { sql: ` AND ${unresolvedOf('e.')}`, params: [] };
  if (filter !== 'tag' || tag === undefined) return NOTHING;
  const same = `g.${here} AND g.tag = ? AND g.created_at = e.created_at AND g.id = e.id`;
  return { sql: ` AND EXISTS (SELECT 1 FROM ensemble_tags AS g WHERE ${same})`, params: [tag] };
}

/** The executions that match one filter, by its index. A running execution is held or free, which are two indexes. */
function rangesOf(here: string, walk: Walk, query: ExecutionQuery): readonly Range[] {
  const { status, tag, search } = query;
  const on = (from: string, { sql, params }: Part): Range => ({
    from,
    as: 'e',
    where: { sql: `e.${here}${sql}`, params },
  });
  if (walk === 'search') {
    const texts = textRange(search as string);
    const found = `SELECT id FROM ensemble_executions WHERE ${here} AND id >= ? AND id < ?
      UNION SELECT id FROM ensemble_tags WHERE ${here} AND tag >= ? AND tag < ?`;
    const from = `(${found}) AS x CROSS JOIN ${EXECUTIONS} ON e.${here} AND e.id = x.id`;
    return [{ from, as: 'e', where: { sql: 'true', params: [...texts, ...texts] } }];
  }
  if (walk === 'tag') {
    const from = `ensemble_tags AS t CROSS JOIN ${EXECUTIONS} ON e.namespace = t.namespace AND e.id = t.id`;
    return [{ from, as: 't', where: { sql: `t.${here} AND t.tag = ?`, params: [tag as string] } }];
  }
  const own = filterOf(here, walk, query);
  const open = status !== undefined && status !== 'completed';
  if (walk !== 'status' && !(walk === 'ensemble' && open)) return [on(`${BY}${INDEXES[walk]}`, own)];
  const { sql } = filterOf(here, 'status', query);
  const by = walk === 'status' ? NOTHING : own;
  const free = on(`${BY}${INDEXES_BY_STATUS[walk]}`, { ...by, sql: `${by.sql}${sql} AND ${OPEN_OR_FAILED}` });
  const held = on(`${BY}held`, { ...by, sql: `${by.sql} AND owner IS NOT NULL` });
  return status === 'running' ? [free, held] : [free];
}

/** Merges ranges that are in the order of the list. Of each, at most the rows of one page are read. */
function merge(ranges: readonly Part[], sorts: string, limit: number): Part {
  const all = ranges.map(({ sql }) => `SELECT * FROM (${sql})`).join(' UNION ALL ');
  const params = [...ranges.flatMap((range) => range.params), limit];
  return { sql: `${all} ORDER BY at ${sorts}, name ${sorts} LIMIT ?`, params };
}

/** @returns the statement that finds the executions of one range, and its parameters without the limit */
function find({ from, as, where }: Range, query: ExecutionQuery, others: readonly Part[], columns: string): Part {
  const { createdAt, id, end, follows, until } = boundsOf<SqlValue>(query, Number.MIN_SAFE_INTEGER, AFTER_ALL);
  const rest = others.map(({ sql }) => sql).join('');
  const sql = `SELECT ${columns} FROM ${from}
    WHERE ${where.sql} AND (${as}.created_at, ${as}.id) ${follows} (?, ?) AND ${as}.created_at ${until} ?${rest}`;
  const params = [...where.params, createdAt, toTextColumn(id), end, ...others.flatMap((other) => other.params)];
  return { sql, params };
}
