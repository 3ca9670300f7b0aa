/**
 * What is due in a file of which a part is damaged: its index alone says so, and each row is looked at by itself. What can't be
 * read or written is told once and left alone from then on; all else is claimed.
 */

import { OrchestratorError } from '../../../engine/errors.ts';
import type { SqlConnection, SqlRow, SqlValue } from './connection.ts';
import { type Lost, whereDamaged } from './damaged.ts';

export interface DamagedDue {
  /**
   * Claims what is due and can be reached, the longest due first. Not to be called in a transaction.
   * @throws INTERNAL, once for each, when some can't be reached: nothing is claimed then
   */
  claim(query: DueQuery, rows: DueRows): readonly SqlRow[];
  /** @throws INTERNAL, which names those that nobody was told of yet */
  tell(): never;
  /** When the first of all that can be reached is due. */
  next(except: readonly string[]): SqlValue | undefined;
}

export interface DueQuery {
  readonly now: number;
  readonly limit: number;
  /** Versions, as they stand in columns. */
  readonly except: readonly string[];
}

export interface DueRows {
  read(ref: number): SqlRow | undefined;
  claim(row: SqlRow): void;
}

/** So many are named. */
const NAMED = 10;

/** @param due - the table with the index of what is due, and its condition */
export function createDamagedDue(connection: SqlConnection, due: string, here: string, lost: Lost): DamagedDue {
  const open = `${due} AND due_at IS NOT NULL AND version NOT IN (SELECT value FROM json_each(?))
    AND ref NOT IN (SELECT value FROM json_each(?))`;
  // Prepared when a file is damaged, which it is not as a rule.
  const prepare = () => ({
    due: connection.prepare(`SELECT ref FROM ${open} AND due_at <= ? ORDER BY due_at, ref LIMIT ?`),
    next: connection.prepare(`SELECT min(due_at) AS due FROM ${open}`),
    // The index of the ids alone: the row itself would be asked for otherwise.
    ids: connection.prepare(`
      SELECT id FROM ensemble_executions INDEXED BY sqlite_autoindex_ensemble_executions_1
      WHERE ${here} AND +ref IN (SELECT value FROM json_each(?)) LIMIT ${NAMED}`),
  });
  let prepared: ReturnType<typeof prepare> | undefined;
  const select = () => {
    prepared ??= prepare();
    return prepared;
  };

  const params = (except: readonly string[]) => [JSON.stringify(except), JSON.stringify([...lost.refs])];

  const tell = (): never => {
    const [refs, count] = [JSON.stringify([...lost.untold]), lost.untold.size];
    lost.told();
    const ids = whereDamaged(
      () =>
        select()
          .ids.all([refs])
          .map(({ id }) => String(id)),
      () => [],
    );
    const named = [...ids, ...(count > ids.length ? [`${count - ids.length} more`] : [])].join(', ');
    const message = `the SQLite file is damaged: some executions can't be read or written, and are left alone from now on (${named}); the others continue. Restore the file from a backup, or save what can be read with \`sqlite3 FILE .recover\``;
    throw new OrchestratorError('INTERNAL', message, { details: { executions: ids } });
  };

  return {
    claim({ now, limit, except }, { read, claim }) {
      const found: (readonly [number, SqlRow])[] = [];
      for (const { ref } of select().due.all([...params(except), now, limit])) {
        const row = whereDamaged(
          () => read(ref as number),
          () => undefined,
        );
        if (row) found.push([ref as number, row]);
        else lost.add(ref as number);
      }
      // Before anything is claimed: whoever is told of them holds nothing.
      if (lost.untold.size > 0) tell();
      const isClaimed = ([ref, row]: readonly [number, SqlRow]) =>
        whereDamaged(
          () => {
            claim(row);
            return true;
          },
          () => {
            lost.add(ref);
            return false;
          },
        );
      return found.filter(isClaimed).map(([, row]) => row);
    },
    tell,
    next: (except) => (lost.untold.size > 0 ? 0 : select().next.all(params(except))[0]?.due),
  };
}
