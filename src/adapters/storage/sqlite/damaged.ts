/**
 * Files of which a part is damaged: what is done to many rows at once is done again row by row, so that the others continue. Nothing
 * of this costs anything while the file is whole.
 *
 * SQLite lets nothing be written any more in a transaction that met damage, so the rows are each a transaction of their own.
 */

import type { SqlConnection, SqlStatement, SqlValue } from './connection.ts';
import { isCorrupt } from './failure.ts';

/** Does it another way where what is needed stands in a damaged part of the file. */
export function whereDamaged<T>(whole: () => T, byRow: () => T): T {
  try {
    return whole();
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return byRow();
  }
}

/** Executions that can't be read or written: they are left alone from then on, and told of once. */
export interface Lost {
  readonly refs: ReadonlySet<number>;
  /** Those that nobody was told of yet. */
  readonly untold: ReadonlySet<number>;
  add(ref: number): void;
  told(): void;
}

export function createLost(): Lost {
  const refs = new Set<number>();
  const untold = new Set<number>();
  return {
    refs,
    untold,
    add(ref) {
      if (!refs.has(ref)) untold.add(ref);
      refs.add(ref);
    },
    told: () => untold.clear(),
  };
}

/** An update of all executions that an index finds. Both ways return how many were updated. */
export interface UpdateFound {
  all(set: readonly SqlValue[], found: readonly SqlValue[]): number;
  /** Leaves out those that can't be reached. Not to be called in a transaction. */
  byRow(set: readonly SqlValue[], found: readonly SqlValue[], lost: Lost): number;
}

/**
 * @param update - an UPDATE of the named table up to the end of its `WHERE namespace = ...`
 * @param from - the table, by an index that answers `where` alone, without the rows
 */
export function updateFound(
  connection: SqlConnection,
  update: (from: string) => string,
  { from, here, where }: { readonly from: string; readonly here: string; readonly where: string },
): UpdateFound {
  const all = connection.prepare(`${update(from)} ${where}`);
  let byRow: { readonly refs: SqlStatement; readonly one: SqlStatement } | undefined;
  return {
    all: (set, found) => all.run([...set, ...found]),
    byRow(set, found, lost) {
      byRow ??= {
        refs: connection.prepare(`SELECT ref FROM ${from} WHERE ${here} ${where}`),
        one: connection.prepare(`${update('ensemble_executions')} AND ref = ?`),
      };
      const { refs, one } = byRow;
      return refs.all(found).reduce(
        (count, { ref }) =>
          count +
          whereDamaged(
            () => one.run([...set, ref as number]),
            () => {
              lost.add(ref as number);
              return 0;
            },
          ),
        0,
      );
    },
  };
}
