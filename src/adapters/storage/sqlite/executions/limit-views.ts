/** What is said about limits, and what holds executions up. */

import { limitId } from '../../../../engine/execution/limits/flow-limit.ts';
import type { ExecutionStore } from '../../../../engine/storage/storage.port.ts';
import { closeRates, putNamedLimits, takeStepSlot } from '../../sql/queues/claim-queues.ts';
import { readLimitStates, rowsOfLimits } from '../../sql/queues/limit-state.ts';
import { fullLimits, MAX_AHEAD } from '../../sql/queues/limit-waits.ts';
import { KnownLimits } from '../../sql/queues/queue-cursor.ts';
import { runNow } from '../../sql/queues/steps.ts';
import { limitsOfQueue } from '../../sql/queues/take-turns.ts';
import type { RunTransaction, SqlConnection } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import { createQueues, isTakenIn } from './queue-tables.ts';

/** The methods of the storage port in this file. */
export type LimitViews = Pick<ExecutionStore, 'putLimits' | 'closeLimits' | 'takeSlot' | 'freeSlot' | 'limitWaits'>;

export function createLimitViews(
  connection: SqlConnection,
  namespace: string,
  transaction: RunTransaction,
): LimitViews {
  const here = `namespace = ${toLiteral(namespace)}`;
  const queues = createQueues(connection, namespace);
  const stored = new KnownLimits();
  const prepare = () => ({
    queue: connection.prepare(`SELECT e.queue, e.due_at, (
      SELECT count(*) FROM (
        SELECT 1 FROM ensemble_executions AS o
        WHERE o.${here} AND o.queue = e.queue AND o.due_at IS NOT NULL AND (o.due_at, o.ref) < (e.due_at, e.ref) LIMIT ${MAX_AHEAD}
      )
    ) AS ahead FROM ensemble_executions AS e WHERE ${here} AND id = ? AND queue IS NOT NULL AND due_at <= ?`),
    limits: connection.prepare(
      `SELECT id, max, since, period, burst, used, (
        SELECT count(*) FROM ensemble_slots WHERE ${here} AND limit_id = l.id AND ${isTakenIn(here)}
      ) AS taken FROM ensemble_limits AS l WHERE ${here} AND id IN (SELECT value FROM json_each(?))`,
    ),
  });
  // Few stores have limits.
  let prepared: ReturnType<typeof prepare> | undefined;
  return {
    putLimits: (given) =>
      given.length === 0 ? undefined : transaction(() => runNow(putNamedLimits(queues.tables(), given))),
    takeSlot: (limit, step, now) =>
      stored.during(() => transaction(() => runNow(takeStepSlot(queues.tables(), stored, limit, step, now)))),
    freeSlot: (limit, step) => transaction(() => queues.tables().freeStepSlot(limitId(limit), step)),
    closeLimits: (given, until) => transaction(() => runNow(closeRates(queues.tables(), stored, given, until))),
    limitWaits(id, now) {
      prepared ??= prepare();
      const [row] = prepared.queue.all([toTextColumn(id), now]);
      if (!row) return [];
      const queue = row.queue as string;
      const ids = limitsOfQueue(queue);
      const rows = prepared.limits.all([JSON.stringify([...ids, ...rowsOfLimits(ids)])]);
      const taken = new Map(rows.map((limit) => [limit.id, limit.taken as number]));
      const place = { position: (row.ahead as number) + 1, since: row.due_at as number };
      return fullLimits(queue, readLimitStates(ids, rows, taken), place, now);
    },
  };
}
