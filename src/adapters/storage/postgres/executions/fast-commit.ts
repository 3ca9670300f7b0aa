/**
 * The most frequent writes: starts, first attempts and ends of executions that this process has started itself and never given away.
 *
 * Their rows are found by their place in the table, which the start returns. A place only says where to look: the statement checks
 * the execution, the worker and the epoch as every write does. Whatever is unusual or has changed is left to the general statement,
 * which also finds out what a fast one has stored already.
 */

import { isRepeatable } from '../../../../engine/execution/start-once.ts';
import type { StepRecord } from '../../../../engine/execution/stored-execution.ts';
import { readNumber, readText } from '../../sql/columns.ts';
import { type SqlClient, type SqlResult, type Statement, statement } from '../drivers/driver.ts';
import { codeOf } from '../drivers/failure.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';
import { aliveIn, endsInto, from, namesOf, type Parameters, parameters } from './commit-statements.ts';
import {
  type Column,
  ENDS,
  FAST_SETTLE,
  FAST_START,
  FAST_STEP,
  PLACE,
  PLACED_STEP,
  type Place,
  RARE_START,
  toArrays,
} from './entry-columns.ts';
import type { Write } from './plan-writes.ts';

export interface FastCommit {
  /** @returns whether everything was stored. Otherwise the same write is for the general statement */
  run(worker: string, write: Write): Promise<boolean>;
}

/** Beyond this number of running executions, their places are forgotten. */
const MAX_PLACES = 100_000;
const UNIQUE_VIOLATION = '23505';

export function createFastCommit(client: SqlClient, names: Names, namespace: string): FastCommit {
  const statementOf = fastStatements(names);
  const places = new Map<string, Place>();

  const forget = (parts: Write['settles'] | Write['steps']) => {
    for (const { entry } of parts) places.delete(entry.executionId);
  };

  const remember = (starts: Write['starts'], found: string) => {
    if (places.size > MAX_PLACES) places.clear();
    const ids = new Map(starts.map(({ entry: { executionId } }) => [toTextColumn(executionId), executionId]));
    const parts = found.split(' ');
    for (let i = 0; i < parts.length; i += 3) {
      const id = ids.get(parts[i] as string);
      // A part of a text would keep the whole text in memory.
      const tid = [...(parts[i + 2] as string)].join('');
      if (id !== undefined) places.set(id, { ref: Number(parts[i + 1]), tid });
    }
  };

  return {
    async run(worker, write) {
      const { starts, settles, steps } = write;
      const isFast = isUsual(write) && findPlaces(write, places);
      // An end or a release moves the row.
      forget(settles);
      if (!isFast) return false;
      const isPlain = steps.every(({ part }) => part.status === 'completed' && !part.note);
      const has = { starts: starts.length > 0, settles: settles.length > 0, steps: steps.length > 0, isPlain };
      const params = [
        ...toArrays(starts, FAST_START),
        ...toArrays(settles, FAST_SETTLE),
        ...toArrays(steps, stepColumns(has)),
      ];
      let result: SqlResult;
      try {
        result = await client.run(statementOf(has), [namespace, toTextColumn(worker), ...params]);
      } catch (error) {
        forget(steps);
        // A key or an id is taken: nothing was stored.
        if (codeOf(error) === UNIQUE_VIOLATION) return false;
        throw error;
      }
      const isStored = countStored(result, has) === starts.length + settles.length + steps.length;
      const [row] = result.rows;
      if (isStored && has.starts && row) remember(starts, readText(row, 'places', 'a commit'));
      if (!isStored) forget(steps);
      return isStored;
    },
  };
}

interface HasParts {
  readonly starts: boolean;
  readonly settles: boolean;
  readonly steps: boolean;
  /** All steps are results without an error. */
  readonly isPlain: boolean;
}

function countStored({ rows: [row], count }: SqlResult, { starts, settles, steps }: HasParts): number {
  if (steps && !starts && !settles) return count;
  if (!row) return 0;
  const parts = [starts && 'started', settles && 'settled', steps && 'put'].filter((name) => name !== false);
  return parts.reduce((sum, name) => sum + readNumber(row, name, 'a commit'), 0);
}

function isUsual({ starts, tags, charges, states, settles, steps, deliveries, expects }: Write): boolean {
  if (tags.length + charges.length + states.length + deliveries.length > 0 || expects) return false;
  if (starts.length + settles.length + steps.length === 0) return false;
  return (
    // Starts that a caller may repeat are written in one order by all processes, see the general statement.
    starts.every((start) => !isRepeatable(start.part) && RARE_START.every(([, , value]) => value(start) === null)) &&
    // A release gives the row away.
    settles.every(({ part }) => part !== undefined) &&
    steps.every(({ entry, part }) => part.attempts === 1 && part.retryAt === undefined && !entry.start)
  );
}

/** @returns whether the places of all executions are known that the write does not start */
function findPlaces({ settles, steps }: Write, places: ReadonlyMap<string, Place>): boolean {
  for (const part of [...settles, ...steps]) {
    part.at = places.get(part.entry.executionId);
    if (!part.at) return false;
  }
  return true;
}

function fastStatements({ owners, executions, steps, ends }: Names): (has: HasParts) => Statement {
  const alive = aliveIn(owners);
  const isAt =
    'e.ctid = x.tid AND e.ref = x.ref AND e.id = x.id AND e.epoch = x.epoch AND e.owner = (SELECT ref FROM alive)';
  const insertStarts = (p: Parameters) => `
    INSERT INTO ${executions} (namespace, owner, status, ${namesOf(FAST_START).join(', ')}, started_at)
    SELECT $1, alive.ref, 'running', ${from('x', FAST_START)}, x.created_at FROM ${p.rows(FAST_START)}, alive`;
  const updateSettled = (p: Parameters) => `
    UPDATE ${executions} e SET owner = NULL, status = x.status, finished_at = x.finished_at, duration = x.duration,
      agents = x.agents, error = x.error, output = x.output, waits_for = NULL, due_at = NULL, handover = x.handover,
      resumed_at = CASE WHEN x.handover IS NULL THEN e.resumed_at END
    FROM ${p.rows(FAST_SETTLE)} WHERE ${isAt}`;
  const insertSteps = (p: Parameters, has: HasParts) => {
    const all = stepColumns(has);
    const fixed = has.isPlain ? PLAIN_STEP : {};
    const columns = all.slice(PLACE.length, has.settles ? -1 : undefined);
    // A row that moved while this statement waited for it is not ended: then its last steps are not stored either.
    const whole = has.settles ? 'WHERE NOT x.ends OR x.ref IN (SELECT ref FROM settled)' : '';
    return `INSERT INTO ${steps} (execution, ${[...namesOf(columns), ...Object.keys(fixed)].join(', ')})
      SELECT x.ref, ${[from('x', columns), ...Object.values(fixed)].join(', ')}
      FROM ${p.rows(all)} JOIN ${executions} e ON ${isAt} ${whole} ORDER BY x.nr`;
  };
  const make = (has: HasParts): Statement => {
    const p = parameters();
    const parts = [
      ...(has.starts ? [['started', `${insertStarts(p)} RETURNING id, ref, ctid`]] : []),
      ...(has.settles ? [['settled', updateSettled(p)]] : []),
      ...(has.steps ? [['put', insertSteps(p, has)]] : []),
    ];
    const [first] = parts;
    // The number of rows says whether all were stored.
    if (parts.length === 1 && first && has.steps) return statement(`WITH ${alive} ${first[1]}`);
    const answers = parts.map(([name]) => [name, `count(*) FROM ${name}`]);
    if (has.starts) answers.push(['places', "string_agg(id || ' ' || ref || ' ' || ctid, ' ') FROM started"]);
    const others = has.settles ? [endsInto(ends, 'settled')] : [];
    const returning = (name = '', sql = '') => `${name} AS (${sql}${RETURNING[name] ?? ''})`;
    return statement(
      `WITH ${[alive, ...parts.map(([name, sql]) => returning(name, sql)), ...others].join(', ')}
      SELECT ${answers.map(([name, sql]) => `(SELECT ${sql}) AS ${name}`).join(', ')}`,
      answers.map(([name]) => name as string),
    );
  };
  const made = new Map<number, Statement>();
  return (has) => {
    const key = (has.starts ? 1 : 0) + (has.settles ? 2 : 0) + (has.steps ? 4 : 0) + (has.isPlain ? 8 : 0);
    const known = made.get(key) ?? make(has);
    made.set(key, known);
    return known;
  };
}

const RETURNING: Readonly<Record<string, string>> = {
  settled: ' RETURNING e.ref, x.counted',
  put: ' RETURNING 1',
};

function stepColumns({ isPlain, settles }: HasParts): readonly Column<StepRecord>[] {
  const columns = isPlain ? FAST_STEP : PLACED_STEP;
  return settles ? [...columns, ENDS] : columns;
}

/** What all results without an error have in the columns that {@link FAST_STEP} lacks. */
const PLAIN_STEP = { status: "'completed'", attempts: '1', note: 'false' };
