/** What is said about limits, and what holds executions up. */

import { limitId } from '../../../../engine/execution/limits/flow-limit.ts';
import type { ExecutionStore } from '../../../../engine/storage/storage.port.ts';
import { readNumber, readText } from '../../sql/columns.ts';
import { closeRates, putNamedLimits, takeStepSlot } from '../../sql/queues/claim-queues.ts';
import { readLimitStates, rowsOfLimits } from '../../sql/queues/limit-state.ts';
import { fullLimits, MAX_AHEAD } from '../../sql/queues/limit-waits.ts';
import { KnownLimits } from '../../sql/queues/queue-cursor.ts';
import { runLater } from '../../sql/queues/steps.ts';
import { limitsOfQueue } from '../../sql/queues/take-turns.ts';
import { type SqlClient, statement, toArray } from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';
import { isTakenIn, LIMIT, NO_CALLERS } from './queue-statements.ts';
import { createQueues } from './queue-tables.ts';

/** The methods of the storage port in this file. */
export type LimitViews = Pick<ExecutionStore, 'putLimits' | 'closeLimits' | 'takeSlot' | 'freeSlot' | 'limitWaits'>;

export function createLimitViews(client: SqlClient, names: Names, namespace: string): LimitViews {
  const { executions, limits, slots } = names;
  const queuesOn = createQueues(names, namespace, NO_CALLERS);
  const stored = new KnownLimits();
  const selectQueue = statement(
    `SELECT e.queue, e.due_at, (
      SELECT count(*) FROM (
        SELECT FROM ${executions} o WHERE o.namespace = $1 AND o.queue = e.queue AND (o.due_at, o.ref) < (e.due_at, e.ref) LIMIT ${MAX_AHEAD}
      ) before
    ) AS ahead FROM ${executions} e WHERE namespace = $1 AND id = $2 AND queue IS NOT NULL AND due_at <= $3::bigint`,
    ['queue', 'due_at', 'ahead'],
  );
  const selectLimits = statement(
    `SELECT ${LIMIT}, (SELECT count(*) FROM ${slots} s WHERE s.namespace = $1 AND s.limit_id = l.id AND ${isTakenIn(executions)}) AS taken
    FROM ${limits} l WHERE namespace = $1 AND id = ANY ($2::text[])`,
    [...LIMIT, 'taken'],
  );
  return {
    putLimits: (given) =>
      given.length === 0 ? undefined : client.transaction((on) => runLater(putNamedLimits(queuesOn(on), given))),
    takeSlot: (limit, step, now) =>
      stored.during(() => client.transaction((on) => runLater(takeStepSlot(queuesOn(on), stored, limit, step, now)))),
    freeSlot: (limit, step) => queuesOn(client).freeStepSlot(limitId(limit), step),
    closeLimits: (given, until) => client.transaction((on) => runLater(closeRates(queuesOn(on), stored, given, until))),
    async limitWaits(id, now) {
      const [row] = (await client.run(selectQueue, [namespace, toTextColumn(id), now])).rows;
      if (!row) return [];
      const queue = readText(row, 'queue', 'an execution');
      const ids = limitsOfQueue(queue);
      const { rows } = await client.run(selectLimits, [namespace, toArray([...ids, ...rowsOfLimits(ids)])]);
      const taken = new Map(rows.map((limit) => [limit.id, readNumber(limit, 'taken', 'a limit')]));
      const [ahead, since] = (['ahead', 'due_at'] as const).map((column) => readNumber(row, column, 'an execution'));
      const place = { position: (ahead as number) + 1, since: since as number };
      return fullLimits(queue, readLimitStates(ids, rows, taken), place, now);
    },
  };
}
