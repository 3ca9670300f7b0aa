/** Runs the actions of SQL databases, except exports. */

import type { Json } from '../../engine/base/json/json.ts';
import type { SqlDatabase, SqlStatement } from '../../engine/storage/data.port.ts';
import { readCursor, toCursor } from './cursor.ts';
import { type Params, withParams } from './statement.ts';
import type { StorageConfig } from './storage-config.ts';

const DEFAULT_ROWS = 1000;

/** The statement of a config, with its values. @throws INVALID_INPUT if placeholders and values don't fit */
export function statementOf({ query, params }: StorageConfig): SqlStatement {
  return withParams(query as SqlStatement, params as Params | undefined);
}

export async function runSql(database: SqlDatabase, given: StorageConfig, signal: AbortSignal): Promise<Json> {
  const statement = statementOf(given);
  if (given.action === 'execute') {
    const { changes } = await database.execute(statement, { signal });
    return { changes, success: true };
  }
  const of = [statement.strings, statement.values];
  const { cursor } = given;
  const limit = given.limit ?? DEFAULT_ROWS;
  const offset = typeof cursor === 'string' ? readCursor<number>(cursor, of, 'number') : 0;
  const { rows, hasMore } = await database.query(statement, { limit, offset, signal });
  return {
    results: rows,
    count: rows.length,
    ...(hasMore && { nextCursor: toCursor(offset + rows.length, of) }),
  };
}
