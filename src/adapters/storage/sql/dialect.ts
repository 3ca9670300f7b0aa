/**
 * What a table that is written once needs of the SQL database that it is in. Statements are written as Postgres takes them, with
 * numbered parameters and casts of parameters (`$1::bigint`). SQLite gets them without casts.
 */

import type { MaybePromise } from '../../../engine/base/maybe-promise.ts';
import type { StoredRow } from './columns.ts';

export type SqlParam = string | number | null | Uint8Array;

/** The tables that are written once. */
export type TableName =
  | 'documents'
  | 'deliveries'
  | 'definitions'
  | 'states'
  | 'schedules'
  | 'tokens'
  | 'ends'
  | 'tallies'
  | 'kv'
  | 'objects';

/** A prepared statement. */
export interface SqlQuery {
  rows(params: readonly SqlParam[]): MaybePromise<readonly StoredRow[]>;
  /** How many rows it wrote. */
  count(params: readonly SqlParam[]): MaybePromise<number>;
}

export interface SqlDialect {
  /** The name of a table in statements. */
  table(name: TableName): string;
  /** @param columns - that it returns, in order */
  prepare(sql: string, columns?: readonly string[]): SqlQuery;
  /**
   * Changes rows and returns them as one.
   * @param select - the rows, with the columns
   * @param update - changes the rows of `select`, with the same parameters
   */
  prepareTake(select: string, update: string, columns: readonly string[]): Pick<SqlQuery, 'rows'>;
  /** Text as a column value, also with characters that the database does not take. */
  text(text: string): string;
  /** The column `key` of a row, which is kept as it is. */
  readonly key: { readonly select: string; read(value: string): string };
  readonly bytes: {
    /** The expression that selects a column of bytes. */
    select(column: string): string;
    /** @returns undefined for a damaged value */
    read(value: unknown): Uint8Array | undefined;
    /** The expression that stores a parameter as bytes. */
    insert(parameter: string): string;
    param(content: Uint8Array): SqlParam;
  };
  /**
   * Ends a subquery of rows to delete, which other processes may be deleting. Put the subquery in `WITH ... AS MATERIALIZED`: elsewhere
   * Postgres may evaluate it several times, and take more rows than its limit.
   */
  readonly skipLocked: string;
  /** A column that SQLite must not search by: without statistics it prefers the equal one to the one that the index is made for. */
  notSearched(column: string): string;
}

/** A statement for a database that numbers parameters by their places: `?` for each, and which parameter each is. */
export interface PlacedStatement {
  readonly sql: string;
  place<T>(params: readonly T[]): T[];
}

export function toPlaced(sql: string): PlacedStatement {
  const places: number[] = [];
  const placed = sql.replace(/\$(\d+)(::[a-z]+)?/g, (_, number: string) => {
    places.push(Number(number) - 1);
    return '?';
  });
  return { sql: placed, place: (params) => places.map((place) => params[place] as (typeof params)[0]) };
}
