/** Runs one write: picks the smallest statement that holds all of it, and says what was stored. */

import { OrchestratorError } from '../../../engine/errors.ts';
import type { StepRecord } from '../../../engine/model/stored-execution.ts';
import { readNumber } from '../sql/columns.ts';
import { readList, toText } from './columns.ts';
import type { CommitStatements, Shape } from './commit-statements.ts';
import {
  deliveryRow,
  gated,
  partRow,
  resultPartRow,
  resultRow,
  settleRow,
  startRow,
  stateRow,
  stepRow,
  type ToRow,
  toArrays,
} from './entry-rows.ts';
import { codeOf, UNIQUE_VIOLATION } from './failure.ts';
import { isResult, type Owned, type Write } from './plan-writes.ts';
import type { SqlClient, SqlParam, SqlResult, SqlRunner } from './sql-client.ts';

/** What a write stored where it did not store all. */
export interface Written {
  /** Executions that ended or were given up, by the id in their row. */
  readonly settled: ReadonlySet<string>;
  /** Ensembles whose state was changed. */
  readonly changed: ReadonlySet<string>;
  /** Its one entry met another version of the state than it expected, and was not stored before. */
  readonly isConflict?: true;
}

/** They give undefined when all of it was stored. */
export interface RunWrite {
  write(on: SqlRunner, owner: string, write: Write): Promise<Written | undefined>;
  /** One step and nothing else: the write that there is most of, without a plan. */
  step(owner: string, step: Owned<StepRecord>): Promise<Written | undefined>;
}

/** How steps become rows in either statement of a shape. */
type StepRows = { readonly [statement in keyof Shape]: ToRow<StepRecord> };

const FENCED_STEPS: StepRows = { fresh: resultRow, careful: stepRow };
/** One entry's steps stand without what they are fenced by, which is said once. */
const STEPS_OF_ONE: StepRows = { fresh: resultPartRow, careful: partRow };
const NOTHING: Written = { settled: new Set(), changed: new Set() };

export function createRunWrite(client: SqlClient, statements: CommitStatements, namespace: string): RunWrite {
  /** What is new makes the cheaper statement; where some of it turns out to be stored, the other one is run. */
  const runEither = async (on: SqlRunner, shape: Shape, paramsOf: (careful: boolean) => readonly SqlParam[]) => {
    // In a transaction nothing could follow its failure.
    if (on !== client) return on.run(shape.careful, paramsOf(true));
    try {
      return await on.run(shape.fresh, paramsOf(false));
    } catch (error) {
      if (codeOf(error) !== UNIQUE_VIOLATION) throw error;
      return on.run(shape.careful, paramsOf(true));
    }
  };

  /** @param before - what stands before the steps */
  const runShape = (
    on: SqlRunner,
    shape: Shape,
    { isFresh, steps }: Write,
    before: readonly SqlParam[],
    rows: StepRows,
  ): Promise<SqlResult> => {
    const paramsOf = (careful: boolean) => [...before, ...toArrays(steps, careful ? rows.careful : rows.fresh)];
    return isFresh ? runEither(on, shape, paramsOf) : on.run(shape.careful, paramsOf(true));
  };

  const runSteps = async (on: SqlRunner, write: Write, params: SqlParam[]) => {
    if (write.steps.length === 0) return NOTHING;
    const { count } = await runShape(on, statements.steps, write, params, FENCED_STEPS);
    return count === write.steps.length ? undefined : NOTHING;
  };

  const runStarts = async (on: SqlRunner, { starts: [first, ...more] }: Write, params: SqlParam[]) => {
    if (!first) return NOTHING;
    const isOne = more.length === 0;
    params.push(...(isOne ? startRow(first) : toArrays([first, ...more], startRow)));
    const { count } = await runEither(on, isOne ? statements.start : statements.starts, () => params);
    return count === more.length + 1 ? undefined : NOTHING;
  };

  const runSettle = async (on: SqlRunner, write: Write, params: SqlParam[]) => {
    for (const settle of write.settles) params.push(...settleRow(settle));
    const { count } = await runShape(on, statements.settle, write, params, STEPS_OF_ONE);
    return count === 1 ? undefined : NOTHING;
  };

  const runState = async (on: SqlRunner, write: Write, params: SqlParam[]): Promise<Written | undefined> => {
    const last = write.steps.at(-1);
    for (const state of write.states) params.push(...stateRow(state), last ? toText(last.part.key) : null);
    const { rows } = await runShape(on, statements.state, write, params, STEPS_OF_ONE);
    if (rows[0]?.changed === '1') return undefined;
    // It is held, the state was another one from the start, and its step is not there: no repeat, so no second look is needed.
    return rows[0]?.is_conflict === 't' ? { ...NOTHING, isConflict: true } : NOTHING;
  };

  const runMixed = async (on: SqlRunner, write: Write, params: SqlParam[]) => {
    const { starts, settles } = write;
    params.push(...toArrays(starts, startRow), ...toArrays(settles, settleRow), settles.length);
    return toWritten(write, await runShape(on, statements.mixed, write, params, FENCED_STEPS));
  };

  const runWhole = async (on: SqlRunner, write: Write, params: SqlParam[]) => {
    const { starts, states, settles, steps, deliveries } = write;
    params.push(...toArrays(starts, startRow), ...toArrays(states, stateRow), states.length);
    params.push(...toArrays(settles, gated(settleRow)), settles.length);
    params.push(...toArrays(steps, gated(stepRow)), ...toArrays(deliveries, gated(deliveryRow)));
    return toWritten(write, await on.run(statements.whole, params));
  };

  const runAny = (on: SqlRunner, owner: string, write: Write) => {
    const { places, starts, settles, states, steps, deliveries, givesToStarts } = write;
    const params: SqlParam[] = [namespace, toText(owner)];
    const isOne = places.length === 1;
    if (deliveries.length === 0 && !givesToStarts) {
      if (states.length === 0) {
        if (starts.length === 0 && settles.length === 0) return runSteps(on, write, params);
        if (steps.length === 0 && settles.length === 0) return runStarts(on, write, params);
        return isOne ? runSettle(on, write, params) : runMixed(on, write, params);
      }
      if (isOne && settles.length === 0) return runState(on, write, params);
    }
    return runWhole(on, write, params);
  };

  return {
    write: runAny,
    async step(owner, step) {
      const about = [namespace, toText(owner)];
      const paramsOf = (careful: boolean) => [...about, ...(careful ? stepRow(step) : resultRow(step))];
      const { count } = isResult(step.part)
        ? await runEither(client, statements.step, paramsOf)
        : await client.run(statements.step.careful, paramsOf(true));
      return count === 1 ? undefined : NOTHING;
    },
  };
}

function toWritten(write: Write, { rows: [row] }: SqlResult): Written | undefined {
  if (!row) throw new OrchestratorError('INTERNAL', 'a commit got no answer from Postgres');
  const { starts, states, settles, steps, deliveries } = write;
  const expected = { started: starts, changed: states, settled: settles, put: steps, sent: deliveries };
  const isAll = Object.entries(expected).every(
    ([name, parts]) => row[name] === undefined || readNumber(row, name, 'a commit') === parts.length,
  );
  return isAll ? undefined : { settled: new Set(readList(row, 'ids')), changed: new Set(readList(row, 'ensembles')) };
}
