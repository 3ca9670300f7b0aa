/**
 * Claims from a file that is partly damaged. The index of due executions is read without the rows, and then each row by
 * itself. An execution that can't be read or written is reported once and no longer touched; the others are claimed.
 */

import { OrchestratorError } from '../../../../engine/base/errors.ts';
import type { SqlConnection, SqlRow, SqlValue } from '../drivers/driver.ts';
import { type Unreadable, whereDamaged } from '../tables/damaged.ts';

export interface DamagedClaiming {
  /**
   * Claims due executions that can be read, the longest due first. Must not be called in a transaction.
   * @throws INTERNAL when some can't be read, once for each of them; nothing is claimed then
   */
  claim(query: DueQuery, rows: DueRows): readonly SqlRow[];
  /** @throws INTERNAL, which names the executions that were not reported yet */
  report(): never;
  /** When the first execution that can be read is due. @param full - see `FreeSlots` */
  next(excludeVersions: readonly string[], full: string): SqlValue | undefined;
}

export interface DueQuery {
  readonly now: number;
  readonly limit: number;
  /** Versions, as column values. */
  readonly excludeVersions: readonly string[];
  /** See `FreeSlots`. */
  readonly full: string;
}

export interface DueRows {
  read(ref: number): SqlRow | undefined;
  /** False if its caller has no free slot. */
  claim(row: SqlRow): boolean;
}

/** How many executions the message names. */
const MAX_NAMED = 10;

/** @param due - the table with the index of due executions, and its condition */
export function createDamagedClaiming(
  connection: SqlConnection,
  due: string,
  here: string,
  unreadable: Unreadable,
): DamagedClaiming {
  const open = `${due} AND version NOT IN (SELECT value FROM json_each(?))
    AND ref NOT IN (SELECT value FROM json_each(?)) AND (account IS NULL OR account NOT IN (SELECT value FROM json_each(?)))`;
  // Prepared at the first use, because files are rarely damaged.
  const prepare = () => ({
    due: connection.prepare(`SELECT ref FROM ${open} AND due_at <= ? ORDER BY due_at, ref LIMIT ?`),
    next: connection.prepare(`SELECT min(due_at) AS due FROM ${open}`),
    // Only the index of ids is read, not the rows.
    ids: connection.prepare(`
      SELECT id FROM ensemble_executions INDEXED BY sqlite_autoindex_ensemble_executions_1
      WHERE ${here} AND +ref IN (SELECT value FROM json_each(?)) LIMIT ${MAX_NAMED}`),
  });
  let prepared: ReturnType<typeof prepare> | undefined;
  const select = () => {
    prepared ??= prepare();
    return prepared;
  };

  const params = (excludeVersions: readonly string[], full: string) => [
    JSON.stringify(excludeVersions),
    JSON.stringify([...unreadable.refs]),
    full,
  ];

  const report = (): never => {
    const [refs, count] = [JSON.stringify([...unreadable.unreported]), unreadable.unreported.size];
    unreadable.markReported();
    const ids = whereDamaged(
      () =>
        select()
          .ids.all([refs])
          .map(({ id }) => String(id)),
      () => [],
    );
    const named = [...ids, ...(count > ids.length ? [`${count - ids.length} more`] : [])].join(', ');
    const message = `the SQLite file is damaged: some executions can't be read or written (${named}); the storage no longer touches them, and the others continue. Restore the file from a backup, or save what can be read with \`sqlite3 FILE .recover\``;
    throw new OrchestratorError('INTERNAL', message, { details: { executions: ids } });
  };

  return {
    claim({ now, limit, excludeVersions, full }, { read, claim }) {
      const found: (readonly [number, SqlRow])[] = [];
      for (const { ref } of select().due.all([...params(excludeVersions, full), now, limit])) {
        const row = whereDamaged(
          () => read(ref as number),
          () => undefined,
        );
        if (row) found.push([ref as number, row]);
        else unreadable.add(ref as number);
      }
      // Reported before anything is claimed: a claim that fails leaves the worker with nothing that it does not know
      // of.
      if (unreadable.unreported.size > 0) report();
      const isClaimed = ([ref, row]: readonly [number, SqlRow]) =>
        whereDamaged(
          () => claim(row),
          () => {
            unreadable.add(ref);
            return false;
          },
        );
      return found.filter(isClaimed).map(([, row]) => row);
    },
    report,
    next: (excludeVersions, full) =>
      unreadable.unreported.size > 0 ? 0 : select().next.all(params(excludeVersions, full))[0]?.due,
  };
}
