/**
 * The statements of commits: one for a single step, which is the most frequent write, and one for all other writes,
 * with the parts that a write has.
 *
 * Each statement contains the fence. `alive` locks the worker's row, so that no process can consider the worker dead
 * between the check and the write. The execution's row must contain this worker and this epoch.
 */

import { startsWithResults } from '../../../../engine/execution/execution-record.ts';
import { DUE_IN_POSTGRES } from '../../sql/due.ts';
import { PAUSES_IN_POSTGRES } from '../../sql/pauses.ts';
import { type Statement, statement } from '../drivers/driver.ts';
import { countCharges, slotRows } from '../tables/count-charges.ts';
import type { Names } from '../tables/names.ts';
import {
  CHARGE,
  type Column,
  DELIVERY,
  EXPECTS,
  FENCE,
  GATED,
  SETTLE,
  START,
  STATE,
  STEP,
  TAG,
} from './entry-columns.ts';
import type { Write } from './plan-writes.ts';

/** The parameters are the namespace, the worker, and then those given here, each with its columns in their order. */
export interface CommitStatements {
  /**
   * One step: its fence and its columns. With `general` instead, five durable steps of one execution at a time would take
   * 22 % more CPU time in the storage and Postgres.
   */
  readonly step: Statement;
  /**
   * Arrays of starts, tags, charges, states, settles, steps and deliveries, each followed by the number of rows; only of the parts that the write
   * has. A statement with all parts would take 15 to 28 % more CPU time for a single start or end, and 20 % more for a
   * group of steps.
   */
  general(write: Write): Statement;
}

/** The row of the worker, locked: no process can consider it dead meanwhile. */
export const aliveIn = (owners: string) =>
  `alive AS (SELECT ref FROM ${owners} WHERE namespace = $1 AND id = $2 FOR KEY SHARE)`;
export const namesOf = (columns: readonly Column<never>[]) => columns.map(([name]) => name);
export const from = (as: string, columns: readonly Column<never>[]) =>
  columns.map(([name]) => `${as}.${name}`).join(', ');

/** A CTE that stores the lines of ends, see `lineOfEnd`. @param settled - its rows, with the lines in the column `counted` */
export const endsInto = (ends: string, settled: string) =>
  `ended AS (INSERT INTO ${ends} (namespace, body) SELECT $1, string_agg(counted, E'\\n') FROM ${settled} HAVING count(counted) > 0)`;

/** Numbers the parameters in the order in which the parts of a statement are composed. */
export function parameters(last = 2) {
  const next = (type: string) => {
    last += 1;
    return `$${last}::${type}`;
  };
  // The parameters are text: postgres.js takes any text for a boolean as false.
  const one = (type: string) => (type === 'boolean' ? `${next('text')}::boolean` : next(type));
  return {
    row: (columns: readonly Column<never>[]) =>
      `(SELECT $1 AS namespace, ${columns.map(([name, type]) => `${one(type)} AS ${name}`).join(', ')}) x`,
    /**
     * Several rows, each with the namespace and its number `nr`. The limit removes no row. Because its value is a
     * parameter, the planner expects one row in a plan for all calls. So it looks up each row by the whole primary key,
     * and it uses this plan, because a plan for one call seems no cheaper.
     */
    rows: (columns: readonly Column<never>[]) =>
      `(SELECT $1, u.* FROM unnest(${columns.map(([, type]) => next(`${type}[]`)).join(', ')}) WITH ORDINALITY u
      LIMIT ${next('bigint')}) x (namespace, ${namesOf(columns).join(', ')}, nr)`,
  };
}

export const STEP_COLUMNS = STEP.slice(FENCE.length);
const REPLACED = namesOf(STEP_COLUMNS).filter((name) => name !== 'key' && name !== 'note');

/** A record replaces an earlier attempt of its key. A result is never replaced, nor an attempt by an earlier one. */
export const stepsInto = (steps: string) => (execution: string, rows: string) =>
  `
    INSERT INTO ${steps} AS s (execution, ${namesOf(STEP_COLUMNS).join(', ')}) SELECT ${execution}, ${from('x', STEP_COLUMNS)} FROM ${rows}
    ON CONFLICT (execution, key) DO UPDATE SET ${REPLACED.map((name) => `${name} = excluded.${name}`).join(', ')}
    WHERE s.retry_at IS NOT NULL AND s.attempts <= excluded.attempts`;

export type Parameters = ReturnType<typeof parameters>;
type HasParts = Readonly<
  Record<
    'starts' | 'retries' | 'expects' | 'tags' | 'charges' | 'states' | 'settles' | 'ends' | 'steps' | 'deliveries',
    boolean
  >
>;

export function commitStatements({
  owners,
  executions,
  tags,
  charges,
  documents,
  steps,
  states,
  deliveries,
  ends,
}: Names): CommitStatements {
  const alive = aliveIn(owners);
  const isHeld = `e.namespace = x.namespace AND e.id = x.id AND e.epoch = x.epoch AND e.owner = (SELECT ref FROM alive)`;
  const isChanged = '(x.ensemble IS NULL OR x.ensemble IN (SELECT ensemble FROM changed))';

  // A queued execution needs no registered worker.
  const isAsExpected = `(x.document_tag IS NULL OR EXISTS (
      SELECT FROM ${documents} d WHERE d.namespace = $1 AND d.kind = x.document_kind AND d.name = x.document_name
        AND d.tag = x.document_tag AND (d.expires_at IS NULL OR d.expires_at > x.created_at)))`;
  const insertStarts = (p: Parameters, { expects, retries }: Pick<HasParts, 'expects' | 'retries'>) => `
    INSERT INTO ${executions} (namespace, owner, ${namesOf(START).join(', ')}, started_at)
    SELECT $1, CASE WHEN x.due_at IS NULL THEN (SELECT ref FROM alive) END, ${from('x', START)},
      CASE WHEN x.due_at IS NULL THEN x.created_at END
    FROM ${p.rows(expects ? [...START, ...EXPECTS] : START)}
    WHERE (x.due_at IS NOT NULL OR EXISTS (SELECT FROM alive)) ${expects ? `AND ${isAsExpected}` : ''}
    ON CONFLICT DO NOTHING RETURNING id, ref${retries ? ', retry_of' : ''}`;
  const markRetried = `
    UPDATE ${executions} e SET retried = true FROM started n WHERE e.namespace = $1 AND e.id = n.retry_of`;
  const insertTags = (p: Parameters) => `
    INSERT INTO ${tags} (namespace, tag, created_at, id) SELECT $1, x.tag, x.created_at, x.id
    FROM ${p.rows(TAG)} WHERE x.id IN (SELECT id FROM started) ON CONFLICT DO NOTHING RETURNING 1`;

  // Only an execution that this statement has stored is charged. What it ends or releases gives its slot back in the same row, because
  // a statement can't write a row twice.
  const chargesOfStarts = (p: Parameters) =>
    `SELECT x.account, x.period, x.count, x.max FROM ${p.rows(CHARGE)} JOIN started n ON n.id = x.id`;

  const versionOf = `coalesce((SELECT o.version FROM ${states} o WHERE o.namespace = $1 AND o.ensemble = x.ensemble), 0)`;
  const putStates = (p: Parameters) => `
    INSERT INTO ${states} AS s (namespace, ensemble, version, updated_at, value)
    SELECT $1, x.ensemble, x.expected + 1, x.updated_at, x.value
    FROM ${p.rows(STATE)}, ${executions} e WHERE ${isHeld} AND ${versionOf} = x.expected
    ORDER BY x.ensemble
    ON CONFLICT (namespace, ensemble) DO UPDATE
      SET version = excluded.version, updated_at = excluded.updated_at, value = excluded.value
      WHERE s.version = excluded.version - 1
    RETURNING ensemble`;

  // An end has no `due_at`.
  const updateSettled = (p: Parameters, { states: gated, ends: areEnds }: HasParts) => `
    UPDATE ${executions} e SET owner = NULL, ${PAUSES_IN_POSTGRES.released('x.due_at IS NOT NULL', 'x')}, finished_at = x.finished_at, duration = x.duration,
      agents = x.agents, error = x.error, output = x.output, waits_for = x.waits_for,
      due_at = CASE WHEN x.due_at IS NOT NULL THEN ${DUE_IN_POSTGRES.released('x')} END,
      started_at = CASE WHEN x.status = 'queued' THEN NULL ELSE e.started_at END,
      handover = coalesce(x.handover, CASE WHEN x.due_at IS NOT NULL THEN e.handover END),
      resumed_at = CASE WHEN x.handover IS NULL THEN e.resumed_at END
    FROM ${p.rows(gated ? [...SETTLE, GATED] : SETTLE)}
    WHERE ${isHeld}${gated ? ` AND ${isChanged}` : ''} RETURNING e.id, e.account${areEnds ? ', x.counted' : ''}`;

  const putSteps = stepsInto(steps);
  /** Rows of executions that the worker holds, or that the statement starts. */
  const rowsOf = (p: Parameters, { starts, states: gated }: HasParts, columns: readonly Column<never>[]) => {
    const held = `SELECT e.ref FROM ${executions} e WHERE ${isHeld}`;
    const started = 'UNION ALL SELECT n.ref FROM started n WHERE n.id = x.id AND x.epoch IS NULL';
    return `${p.rows(gated ? [...columns, GATED] : columns)}
    CROSS JOIN LATERAL (${held} ${starts ? started : ''} LIMIT 1) t ${gated ? `WHERE ${isChanged}` : ''} ORDER BY x.nr`;
  };
  const putAllSteps = (p: Parameters, has: HasParts) => `${putSteps('t.ref', rowsOf(p, has, STEP))} RETURNING 1`;

  const deliveryColumns = DELIVERY.slice(FENCE.length);
  const putDeliveries = (p: Parameters, has: HasParts) => `
    INSERT INTO ${deliveries} (namespace, ${namesOf(deliveryColumns)
      .map((name) => name.slice('new_'.length))
      .join(', ')})
    SELECT $1, ${from('x', deliveryColumns)} FROM ${rowsOf(p, has, DELIVERY)} ON CONFLICT DO NOTHING RETURNING 1`;

  const general = (has: HasParts): Statement => {
    const p = parameters();
    const parts = [
      ...(has.starts ? [['started', insertStarts(p, has)]] : []),
      ...(has.tags ? [['tagged', insertTags(p)]] : []),
    ];
    const counted = has.charges ? [chargesOfStarts(p)] : [];
    if (has.settles) counted.push(slotRows('settled', -1));
    parts.push(
      ...(has.states ? [['changed', putStates(p)]] : []),
      ...(has.settles ? [['settled', updateSettled(p, has)]] : []),
      ...(has.steps ? [['put', putAllSteps(p, has)]] : []),
      ...(has.deliveries ? [['outbox', putDeliveries(p, has)]] : []),
    );
    const others = counted.length > 0 ? [`counted AS (${countCharges(charges, counted.join(' UNION ALL '))})`] : [];
    if (has.ends) others.push(endsInto(ends, 'settled'));
    if (has.retries) others.push(`retried AS (${markRetried})`);
    const answers = [
      ...parts.map(([name]) => [name, `count(*) FROM ${name}`]),
      ...(has.settles ? [['ids', 'json_agg(id)::text FROM settled']] : []),
      ...(has.states ? [['ensembles', 'json_agg(ensemble)::text FROM changed']] : []),
    ];
    return statement(
      `WITH ${[alive, ...parts.map(([name, sql]) => `${name} AS (${sql})`), ...others].join(', ')}
      SELECT ${answers.map(([name, sql]) => `(SELECT ${sql}) AS ${name}`).join(', ')}`,
      answers.map(([name]) => name as string),
    );
  };

  const made = new Map<string, Statement>();
  return {
    step: statement(`WITH ${alive} ${putSteps('e.ref', `${parameters().row(STEP)}, ${executions} e WHERE ${isHeld}`)}`),
    general(write) {
      const has = {
        ...{ starts: write.starts.length > 0, expects: write.expects, tags: write.tags.length > 0 },
        retries: write.starts.some(({ part }) => startsWithResults(part)),
        ...{ charges: write.charges.length > 0, states: write.states.length > 0 },
        ends: write.settles.some(({ part }) => part !== undefined),
        ...{ settles: write.settles.length > 0, steps: write.steps.length > 0 },
        deliveries: write.deliveries.length > 0,
      };
      const key = JSON.stringify(has);
      const known = made.get(key) ?? general(has);
      made.set(key, known);
      return known;
    },
  };
}
