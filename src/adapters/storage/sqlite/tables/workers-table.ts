/** The workers of a file. All belong to one open storage, the one that holds the file's lock. */

import type { Reclaimed, WorkerStore } from '../../../../engine/storage/storage.port.ts';
import { readId } from '../../sql/read-execution.ts';
import type { RunTransaction, SqlConnection, SqlRow, SqlValue } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import { type Unreadable, updateFound, whereDamaged } from './damaged.ts';
import { HELD } from './names.ts';
import type { WorkerLock } from './worker-lock.ts';

export function workersTable(
  connection: SqlConnection,
  namespace: string,
  dependencies: { readonly transaction: RunTransaction; readonly lock: WorkerLock; readonly unreadable: Unreadable },
): WorkerStore {
  const { transaction, lock, unreadable } = dependencies;
  const here = `namespace = ${toLiteral(namespace)}`;
  const known = new Set<string>();

  const upsert = connection.prepare(`
    INSERT INTO ensemble_owners (namespace, owner, lease_until) VALUES (${toLiteral(namespace)}, ?, ?)
    ON CONFLICT (namespace, owner) DO UPDATE SET lease_until = excluded.lease_until`);
  const renew = connection.prepare(`UPDATE ensemble_owners SET lease_until = ? WHERE ${here} AND owner = ?`);
  const remove = connection.prepare(`DELETE FROM ensemble_owners WHERE ${here} AND owner = ?`);
  const removeAll = connection.prepare(`DELETE FROM ensemble_owners WHERE ${here}`);
  const selectStale = connection.prepare(
    `SELECT owner FROM ensemble_owners WHERE ${here} AND owner <> ? AND lease_until <= ?`,
  );
  const selectHeld = connection.prepare(`SELECT id, epoch FROM ${HELD} WHERE ${here} AND owner = ?`);
  const free = (from: string) =>
    `UPDATE ${from} SET owner = NULL, due_at = ?, recoveries = recoveries + ?, blame = NULL WHERE ${here}`;
  const freeOf = updateFound(connection, free, { from: HELD, here, where: 'AND owner = ?' });
  const freeAll = updateFound(connection, free, { from: HELD, here, where: 'AND owner IS NOT NULL' });
  // With the name of its table: the steps have a column `started_at`, too.
  const startedAt = 'ensemble_executions.started_at';
  const claimedAt = `coalesce(claimed_at, CASE ${startedAt} WHEN -1 THEN created_at ELSE ${startedAt} END)`;
  const blamed = (whose: string) => `
    SELECT ref, coalesce(blame, 0) AS blame, coalesce(blamed_at, 0) AS blamed_at FROM ${HELD} WHERE ${here} AND ${whose} AND ${claimedAt} >= ? AND NOT EXISTS (
      SELECT 1 FROM ensemble_steps AS step WHERE step.execution = ref AND step.started_at > ${claimedAt}
    )`;
  const selectBlamed = connection.prepare(blamed('owner = ?'));
  const selectAllBlamed = connection.prepare(blamed('owner IS NOT NULL'));
  const selectNewest = connection.prepare(
    `SELECT coalesce(max(joined), 0) AS newest FROM ensemble_owners WHERE ${here}`,
  );
  const updateBlame = connection.prepare('UPDATE ensemble_executions SET blame = ?, blamed_at = ? WHERE ref = ?');

  /**
   * Divides the blame for a worker's death equally among the executions that may have caused it.
   * @param rows - the executions, read before they were freed
   */
  const share = (rows: readonly SqlRow[]) => {
    if (rows.length === 0) return;
    const newest = selectNewest.all([])[0]?.newest as number;
    for (const row of rows) {
      const { ref, blame, blamed_at: blamedAt } = row as Readonly<Record<string, number>>;
      const each = Math.floor(BLAME / (rows.length * Math.max(1, newest - (blamedAt as number))));
      updateBlame.run([blame === 0 ? 1 : (blame as number) + each, newest, ref as number]);
    }
  };

  const freeAndRemove = (by: string, set: readonly SqlValue[], blameFrom?: number): number =>
    whereDamaged(
      () =>
        transaction(() => {
          const found = blameFrom === undefined ? [] : selectBlamed.all([by, blameFrom]);
          remove.run([by]);
          const freed = freeOf.all(set, [by]);
          share(found);
          return freed;
        }),
      // A damaged file can't show which executions are to blame.
      () => {
        const freed = freeOf.byRow(set, [by], unreadable);
        remove.run([by]);
        return freed;
      },
    );

  const forget = (worker: string) => {
    known.delete(worker);
    if (known.size === 0) lock.release();
  };

  return {
    register(worker, { now, leaseUntil, blameFrom = Number.MAX_SAFE_INTEGER }) {
      const by = toTextColumn(worker);
      const alone = lock.take();
      try {
        const enter = (free?: () => void) =>
          transaction(() => {
            free?.();
            if (alone) removeAll.run([]);
            upsert.run([by, leaseUntil]);
          });
        const freeWhole = () => {
          const found = selectAllBlamed.all([blameFrom]);
          freeAll.all([now, 1], []);
          share(found);
        };
        if (!alone) enter();
        else
          whereDamaged(
            () => enter(freeWhole),
            () => {
              freeAll.byRow([now, 1], [], unreadable);
              enter();
            },
          );
        known.add(by);
      } catch (error) {
        if (known.size === 0) lock.release();
        throw error;
      }
    },
    renew(worker, leaseUntil) {
      const by = toTextColumn(worker);
      const isKnown = renew.run([leaseUntil, by]) > 0;
      if (!isKnown) forget(by);
      return isKnown;
    },
    unregister(worker, now) {
      const by = toTextColumn(worker);
      freeAndRemove(by, [now, 0]);
      forget(by);
    },
    reclaimFromDead(worker, now, blameFrom = Number.MAX_SAFE_INTEGER) {
      const stale = selectStale.all([toTextColumn(worker), now]).map((row) => row.owner as string);
      if (stale.length === 0) return NOTHING;
      const freed = stale.reduce((count, other) => count + freeAndRemove(other, [now, 1], blameFrom), 0);
      for (const other of stale) forget(other);
      return { freed };
    },
    listHeld: (worker) =>
      selectHeld.all([toTextColumn(worker)]).map((row) => ({ executionId: readId(row), epoch: row.epoch as number })),
  };
}

/** The blame for one death, in thousandths. */
const BLAME = 1000;
const NOTHING: Reclaimed = { freed: 0 };
