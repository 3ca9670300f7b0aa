/**
 * Work on a file that is partly damaged. A statement on many rows that meets damage is repeated row by row, so that the
 * other executions continue. An undamaged file pays nothing for this.
 *
 * SQLite allows no more writes in a transaction that met damage, so each row is a transaction of its own.
 */

import type { SqlConnection, SqlStatement, SqlValue } from '../drivers/driver.ts';
import { isCorrupt } from '../drivers/failure.ts';

/** Runs `byRow` instead when `whole` meets damage. */
export function whereDamaged<T>(whole: () => T, byRow: () => T): T {
  try {
    return whole();
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return byRow();
  }
}

/** Executions that can't be read or written. The storage reports each of them once and no longer touches it. */
export interface Unreadable {
  readonly refs: ReadonlySet<number>;
  /** Executions that were not reported yet. */
  readonly unreported: ReadonlySet<number>;
  add(ref: number): void;
  markReported(): void;
}

export function createUnreadable(): Unreadable {
  const refs = new Set<number>();
  const unreported = new Set<number>();
  return {
    refs,
    unreported,
    add(ref) {
      if (!refs.has(ref)) unreported.add(ref);
      refs.add(ref);
    },
    markReported: () => unreported.clear(),
  };
}

/** An update of all executions that an index finds. Both methods return how many were updated. */
export interface UpdateFound {
  all(set: readonly SqlValue[], found: readonly SqlValue[]): number;
  /** Updates each execution by itself and skips those that can't be written. Must not be called in a transaction. */
  byRow(set: readonly SqlValue[], found: readonly SqlValue[], unreadable: Unreadable): number;
}

/**
 * @param update - makes the UPDATE of a table, up to the end of its `WHERE namespace = ...`
 * @param from - the table with an index that answers `where` without reading rows
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
    byRow(set, found, unreadable) {
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
              unreadable.add(ref as number);
              return 0;
            },
          ),
        0,
      );
    },
  };
}
