/**
 * The queues of executions that run under limits, in Postgres. What arrives is read in one transaction, and a claim is another one.
 * Locks are taken in an order that can't make two of them wait for each other: arrivals lock queues, then limits; a claim takes only
 * queues that nobody has locked, then waits for limits; and what a claim wakes, it skips if it is locked.
 */

import { type FlowLimit, type ListedExecution, limitId } from '../../../../engine/execution/limits/flow-limit.ts';
import { readBoolean, readJson, readNumber, readText } from '../../sql/columns.ts';
import { limitColumns, namedId, readLimitStates, rowsOfLimits } from '../../sql/queues/limit-state.ts';
import type { QueueTables } from '../../sql/queues/queue-tables.ts';
import { type SqlRow, type SqlRunner, type Statement, statement, toArray } from '../drivers/driver.ts';
import type { Names } from '../tables/names.ts';
import {
  arrivalStatements,
  type Callers,
  claimStatements,
  limitStatements,
  slotStatements,
  wakeStatements,
} from './queue-statements.ts';

/** What a claim from the queues gets of the claim around it. */
export interface QueueClaim {
  /**
   * Takes the executions of `$3`, places of rows; the parameters before it are the namespace and the worker, `$4` is the instant. Their
   * slots are `$5` (places), `$6` (limits) and `$7` (held). It settles the queues `$8`, which the limits `$9` block.
   */
  readonly claim: Statement;
  readonly worker: string;
  readonly excludedVersions: string;
}

/** @param claim - for a caller that claims */
export type QueuesOn = (run: SqlRunner, claim?: QueueClaim) => QueueTables<SqlRow>;

const NONE = toArray([]);
const NO_CLAIM: QueueClaim = { claim: statement('SELECT'), worker: '', excludedVersions: '{}' };

export function createQueues(names: Names, namespace: string, callers: Callers): QueuesOn {
  const on = {
    ...arrivalStatements(names),
    ...limitStatements(names),
    ...wakeStatements(names),
    ...slotStatements(names),
    ...claimStatements(names, callers),
  };
  return (runner, { claim, worker, excludedVersions } = NO_CLAIM) => {
    const run = (made: Statement, ...params: readonly (string | number)[]) => runner.run(made, [namespace, ...params]);
    const rowsOf = async (made: Statement, ...params: readonly (string | number)[]) =>
      (await run(made, ...params)).rows;
    const idsOf = (rows: readonly SqlRow[]) => rows.map((row) => readText(row, 'id', 'a queue'));
    const callersLeft = new Map<string, number>();
    return {
      async takeArrivals(now) {
        const rows = await rowsOf(on.takeArrivals, now);
        return rows.map((row) => ({
          queue: readText(row, 'queue', 'an arrival'),
          limits: readJson(row, 'limits', 'an arrival') as unknown as readonly FlowLimit[],
          freed: readBoolean(row, 'freed'),
          ...(typeof row.execution === 'string' && { late: row.execution }),
        }));
      },
      putQueues: (ids) => run(on.putQueues, toArray(ids)),
      async putLimits(given, areNamed) {
        const columns = given.map((limit) => [areNamed ? namedId(limit.name) : limitId(limit), ...limitColumns(limit)]);
        const arrays = Array.from({ length: 6 }, (_, at) => toArray(columns.map((row) => row[at] ?? null)));
        const rows = await rowsOf(on.putLimits, ...arrays);
        return rows.map((row) => readText(row, 'id', 'a limit'));
      },
      lock: (ids) => run(on.lockLimits, toArray(ids), NONE),
      wakeNamed: (names) => run(on.wakeNamed, toArray(names)),
      async wake(wakes) {
        const [limits, counts] = [wakes.map(({ limit }) => limit), wakes.map(({ count }) => count)];
        const rows = await rowsOf(on.wake, toArray(limits), toArray(counts));
        const isAny = rows.some((row) => readBoolean(row, 'woken'));
        return { isAny, limits: idsOf(rows.filter((row) => readBoolean(row, 'in_groups'))) };
      },
      makeReady: (ids) => run(on.makeReady, toArray(ids)),
      async groups(blockedBy, after, most) {
        const rows =
          blockedBy === undefined
            ? rowsOf(on.readyGroups, after, most)
            : rowsOf(on.blockedGroups, after, most, blockedBy);
        return idsOf(await rows);
      },
      async lockOfGroups(blockedBy, groups, most) {
        const given = [
          toArray(groups.map(({ group }) => group)),
          toArray(groups.map(({ after }) => after)),
          most,
        ] as const;
        const rows =
          blockedBy === undefined
            ? rowsOf(on.lockReadyOfGroups, ...given)
            : rowsOf(on.lockBlockedOfGroups, ...given, blockedBy);
        return idsOf(await rows);
      },
      async lockReady(after, most) {
        return idsOf(await rowsOf(on.lockReady(most), after, most));
      },
      async readLimits(ids) {
        const asked = toArray(ids);
        const rows = await rowsOf(on.lockLimits, asked, toArray(rowsOfLimits(ids)));
        const taken = new Map<unknown, number>();
        for (const row of await rowsOf(on.countSlots, asked))
          taken.set(row.limit_id, readNumber(row, 'taken', 'a limit'));
        return readLimitStates(ids, rows, taken);
      },
      async limitsAfter(id, since, most) {
        return idsOf(await rowsOf(on.limitsAfter, id, since, most));
      },
      async deleteLimits(ids) {
        return idsOf(await rowsOf(on.deleteLimits, toArray(ids)));
      },
      async limitsIn(ids) {
        const rows = await rowsOf(on.limitsIn, toArray(ids));
        return rows.flatMap((row) => readJson(row, 'limits', 'an execution') as unknown as readonly FlowLimit[]);
      },
      putUses: (uses) =>
        run(on.putUses, toArray([...uses.keys()]), toArray([...uses.values()].map((use) => JSON.stringify(use)))),
      forgetWakes: (ids) => run(on.forgetWakes, toArray(ids)),
      wakeLater: (wakes) =>
        run(
          on.wakeLater,
          toArray(wakes.map(({ limit }) => limitId(limit))),
          toArray(wakes.map(({ limit }) => JSON.stringify([limit]))),
          toArray(wakes.map(({ at }) => at)),
        ),
      async list(ids) {
        const listed = new Map<string, ListedExecution[]>(ids.map((id) => [id, []]));
        for (const row of await rowsOf(on.list, toArray(ids)))
          listed
            .get(readText(row, 'limit_id', 'a limit'))
            ?.push({ id: readText(row, 'id', 'an execution'), isQueued: readBoolean(row, 'queued') });
        return listed;
      },
      cancel: (ids, now) => run(on.cancel, toArray(ids), now),
      expire: (ids, now) => run(on.expire, toArray(ids), now),
      async heads(turns, now) {
        const [ids, most] = [toArray(turns.map(({ id }) => id)), toArray(turns.map((turn) => turn.most))];
        const rows = await rowsOf(on.heads, ids, most, now, excludedVersions);
        return rows.map((row) => ({ queue: readText(row, 'queue', 'a queue'), row }));
      },
      async waitedFor(asked, now) {
        const [ids, of] = [asked.map(({ queue }) => queue), asked.map(({ limit }) => limit)];
        const shared = asked.map(({ isShared }) => String(isShared));
        const rows = await rowsOf(on.waitedFor, toArray(ids), toArray(of), toArray(shared), now);
        return new Set(rows.map((row) => readText(row, 'queue', 'a queue')));
      },
      hasCallerSlot({ account, free }) {
        if (account === null || account === undefined) return true;
        const left = callersLeft.get(account) ?? Number(free);
        if (left > 0) callersLeft.set(account, left - 1);
        return left > 0;
      },
      keptOf: ({ kept_until_end: kept }) => kept ?? undefined,
      claim(heads, settled, now) {
        const slots = heads.flatMap(({ row, slots }) => slots.map((slot) => ({ ...slot, tid: row.tid ?? null })));
        return rowsOf(
          ...([claim, worker, toArray(heads.map(({ row }) => row.tid ?? null)), now] as const),
          toArray(slots.map(({ tid }) => tid)),
          toArray(slots.map(({ limit }) => limit)),
          toArray(slots.map(({ held }) => (held ? 'true' : null))),
          toArray(settled.map(({ id }) => id)),
          toArray(settled.map(({ blockedBy }) => blockedBy)),
        );
      },
      async putStepSlot(limit, { executionId, key }, isFull) {
        return (await rowsOf(on.putStepSlot, limit, executionId, key, isFull ? 'full' : 'free')).length > 0;
      },
      freeStepSlot: (limit, { executionId, key }) => run(on.freeStepSlot, limit, executionId, key),
      putSlots: (taken) =>
        run(
          on.putSlots,
          toArray(taken.map(({ limit }) => limit)),
          toArray(taken.map(({ execution }) => execution)),
          toArray(taken.map(({ epoch }) => epoch)),
          toArray(taken.map(({ held }) => (held ? 'true' : null))),
          toArray(taken.map(({ listed }) => (listed ? 'true' : null))),
        ),
      settle: (given, now) =>
        run(on.settle, toArray(given.map(({ id }) => id)), toArray(given.map(({ blockedBy }) => blockedBy)), now),
    };
  };
}
