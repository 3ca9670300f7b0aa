/** Counts of ends, in the two databases. A commit adds lines to `ends`; a fold adds them up in `tallies`. */

import { andThen, type MaybePromise } from '../../../../engine/base/maybe-promise.ts';
import { groupEnds, groupEndsIn, MINUTE } from '../../../../engine/events/tallies/end-line.ts';
import {
  addByPeriod,
  addTallies,
  agesAt,
  DAY,
  DAYS_FOR,
  type DatedTally,
  HOUR,
  type StoredTally,
  type Tally,
  talliesOf,
} from '../../../../engine/events/tallies/tally.ts';
import type { TallyStore } from '../../../../engine/events/tallies/tally-store.port.ts';
import type { StoredRow } from '../columns.ts';
import type { SqlDialect } from '../dialect.ts';
import { type Steps, wait } from '../queues/steps.ts';

/** Rows of `ends` that a fold takes. A row is what one commit has ended. */
const MAX_COMMITS = 100;
/** Tallies that a fold adds to those of longer periods. */
const MAX_OLD = 200;

/** Whether an execution is of a dry run, in SQL. */
export const IS_DRY = `started_by LIKE '%"dryRun":{%'`;

/** Runs steps in a transaction. */
export type RunSteps = <T>(work: (dialect: SqlDialect) => Steps<T>) => MaybePromise<T>;

const ROW = ['length', 'at', 'body'];

export function talliesTable(dialect: SqlDialect, run: RunSteps, namespace: string): TallyStore {
  const [ends, tallies] = [dialect.table('ends'), dialect.table('tallies')];
  const ofLength = (length: number, more: string) =>
    `SELECT length, at, body FROM ${tallies} WHERE namespace = $1 AND length = ${length} AND at >= $2::bigint AND at < $3::bigint ${more}`;
  const selectOf = (more: string) =>
    dialect.prepare(
      `SELECT 0 AS length, 0 AS at, body FROM ${ends} WHERE namespace = $1 UNION ALL ${[MINUTE, HOUR, DAY]
        .map((length) => ofLength(length, more))
        .join(' UNION ALL ')}`,
      ROW,
    );
  const [selectAll, selectOne] = [selectOf(''), selectOf('AND ensemble = $4')];
  let agedAt = Number.NEGATIVE_INFINITY;
  /** SQLite has one dialect for all transactions. */
  let made: { readonly on: SqlDialect; readonly statements: ReturnType<typeof foldStatements> } | undefined;

  return {
    fold(now) {
      const ages = now - agedAt >= MINUTE;
      const folded = run((on) => {
        const statements = made?.on === on ? made.statements : foldStatements(on);
        made = { on, statements };
        return foldTallies(statements, namespace, now, ages);
      });
      return andThen(folded, (hasMore) => {
        if (ages && !hasMore) agedAt = now;
        return hasMore;
      });
    },
    read(query) {
      const { since, until, ensemble } = query;
      const span = [namespace, since, until];
      const found = ensemble === undefined ? selectAll.rows(span) : selectOne.rows([...span, ensemble]);
      const answer = (rows: readonly StoredRow[]) => ({
        tallies: rows.flatMap(readTally),
        ends: groupEndsIn(linesOf(rows.filter(({ length }) => Number(length) === 0)), query),
      });
      return andThen(found, answer);
    },
  };
}

function* linesOf(rows: readonly StoredRow[]): Generator<string> {
  for (const { body } of rows) yield* String(body).split('\n');
}

/** Tallies of damaged rows are passed over. */
function readTally({ length, at, body }: StoredRow): readonly StoredTally[] {
  if (Number(length) === 0) return [];
  try {
    return [{ length: Number(length), at: Number(at), tally: JSON.parse(String(body)) as Tally }];
  } catch {
    return [];
  }
}

function foldStatements(on: SqlDialect) {
  const [ends, tallies] = [on.table('ends'), on.table('tallies')];
  const key = 'namespace = $1 AND length = $2::bigint AND at = $3::bigint AND ensemble = $4';
  // A row that all folds write first: they run one after the other.
  const lock = on.prepare(
    `INSERT INTO ${tallies} (namespace, length, at, ensemble, body) VALUES ($1, 0, 0, '', '')
    ON CONFLICT (namespace, length, at, ensemble) DO UPDATE SET body = ''`,
  );
  const places = `SELECT seq FROM ${ends} WHERE namespace = $1 ORDER BY seq LIMIT ${MAX_COMMITS}`;
  const takeEnds = on.prepareTake(
    `SELECT body FROM ${ends} WHERE namespace = $1 AND seq IN (${places})`,
    `DELETE FROM ${ends} WHERE namespace = $1 AND seq IN (${places})`,
    ['body'],
  );
  const old = `SELECT at, ensemble FROM ${tallies} WHERE namespace = $1 AND length = $2::bigint AND at < $3::bigint ORDER BY at LIMIT ${MAX_OLD}`;
  const takeOld = on.prepareTake(
    `SELECT length, at, body FROM ${tallies} WHERE namespace = $1 AND length = $2::bigint AND (at, ensemble) IN (${old})`,
    `DELETE FROM ${tallies} WHERE namespace = $1 AND length = $2::bigint AND (at, ensemble) IN (${old})`,
    ROW,
  );
  const selectOne = on.prepare(`SELECT length, at, body FROM ${tallies} WHERE ${key}`, ROW);
  const put = on.prepare(
    `INSERT INTO ${tallies} (namespace, length, at, ensemble, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (namespace, length, at, ensemble) DO UPDATE SET body = excluded.body`,
  );
  const deleteOld = on.prepare(
    `DELETE FROM ${tallies} WHERE namespace = $1 AND length = $2::bigint AND at < $3::bigint`,
  );
  return { lock, takeEnds, takeOld, selectOne, put, deleteOld };
}

function* foldTallies(
  { lock, takeEnds, takeOld, selectOne, put, deleteOld }: ReturnType<typeof foldStatements>,
  namespace: string,
  now: number,
  ages: boolean,
): Steps<boolean> {
  const addTo = function* (length: number, added: readonly DatedTally[]): Steps<void> {
    for (const { at, tally } of addByPeriod(length, added)) {
      const own = [namespace, length, at, tally.ensemble];
      const known = (yield* wait(selectOne.rows(own))).flatMap(readTally);
      const sum = addTallies([...known.map((one) => one.tally), tally]);
      yield* wait(put.count([...own, JSON.stringify(sum)]));
    }
  };

  yield* wait(lock.count([namespace]));
  const commits = yield* wait(takeEnds.rows([namespace]));
  yield* addTo(MINUTE, talliesOf(groupEnds(linesOf(commits))));
  let hasMore = commits.length === MAX_COMMITS;
  if (!ages) return hasMore;
  for (const { length, next, before } of agesAt(now)) {
    const rows = yield* wait(takeOld.rows([namespace, length, before]));
    hasMore ||= rows.length === MAX_OLD;
    yield* addTo(next, rows.flatMap(readTally));
  }
  yield* wait(deleteOld.count([namespace, DAY, now - DAYS_FOR]));
  return hasMore;
}
