/** Answers for entries of which a write did not store all: were they refused, and why, or stored by an earlier call? */

import { isOrchestratorError, OrchestratorError } from '../../../engine/errors.ts';
import { equalJson, type Json } from '../../../engine/json.ts';
import type { CommitEntry, StepRecord } from '../../../engine/model/stored-execution.ts';
import type { CommitResult } from '../../../engine/ports/storage.ts';
import { readBoolean, readNumber } from '../sql/columns.ts';
import { readEnd, readStep } from '../sql/read-execution.ts';
import { toText } from './columns.ts';
import type { Names } from './names.ts';
import { STEP } from './record-columns.ts';
import type { Written } from './run-write.ts';
import { type SqlRow, type SqlRunner, statement, toArray } from './sql-client.ts';

export interface Refusals {
  answer(
    on: SqlRunner,
    owner: string,
    entries: readonly CommitEntry[],
    written: Written,
  ): Promise<readonly CommitResult[]>;
}

const PLACE = [
  ...['id', 'seed', 'epoch', 'status', 'due_at', 'cancel_at', 'signals'],
  ...['finished_at', 'duration', 'agents', 'error', 'output'],
];
const OF_STEP = 'step_';

export function createRefusals({ owners, executions, steps }: Names, namespace: string): Refusals {
  const select = statement(
    `SELECT x.nr, ${PLACE.map((column) => `e.${column}`).join(', ')}, e.owner IS NULL AS is_free, o.ref IS NOT NULL AS is_held,
      ${STEP.map((column) => `s.${column} AS ${OF_STEP}${column}`).join(', ')}
    FROM unnest($3::text[], $4::text[]) WITH ORDINALITY x (id, key, nr)
    CROSS JOIN LATERAL (SELECT * FROM ${executions} WHERE namespace = $1 AND id = x.id LIMIT 1) e
    LEFT JOIN ${owners} o ON o.namespace = $1 AND o.id = $2 AND o.ref = e.owner
    LEFT JOIN LATERAL (SELECT * FROM ${steps} WHERE execution = e.ref AND key = x.key LIMIT 1) s ON true`,
    ['nr', ...PLACE, 'is_free', 'is_held', ...STEP.map((column) => OF_STEP + column)],
  );

  return {
    async answer(on, owner, entries, written) {
      const ids = toArray(entries.map(({ executionId }) => toText(executionId)));
      const keys = toArray(
        entries.map(({ steps: records }) => (records.length > 0 ? toText(lastOf(records).key) : null)),
      );
      const { rows } = await on.run(select, [namespace, toText(owner), ids, keys]);
      const places = new Map(rows.map((row) => [readNumber(row, 'nr', 'an execution') - 1, row]));
      return entries.map((entry, i) => answerOne(entry, places.get(i), written));
    },
  };
}

function answerOne(entry: CommitEntry, place: SqlRow | undefined, { settled, changed }: Written): CommitResult {
  const { start, state, end, release, epoch } = entry;
  if (!place) return 'fenced';
  const id = place.id as string;
  if (start) return place.seed === toText(start.seed) ? 'stored' : 'exists';
  if (end || release ? settled.has(id) : state && changed.has(toText(state.ensemble))) return 'stored';
  const isEpoch = readNumber(place, 'epoch', `execution ${id}`) === epoch;
  if (!isEpoch || !readBoolean(place, 'is_held')) return isEpoch && isRepeated(entry, place) ? 'stored' : 'fenced';
  if (state) return isSameStep(entry, place) ? 'stored' : 'state-conflict';
  // It held when this was looked up, so it did when it was written: the step was stored before, or there was nothing to write.
  if (!end && !release) return 'stored';
  const message = `execution ${entry.executionId} was not written though it is held; it is to be tried again`;
  throw new OrchestratorError('OVERLOADED', message, { retryable: true });
}

/** Whether all of an entry that is refused was stored by an earlier call: its writer did not hear of it, and repeats it. */
function isRepeated(entry: CommitEntry, place: SqlRow): boolean {
  const { end, release } = entry;
  if (end) return isSame(() => readEnd(place), end);
  if (!release) return isSameStep(entry, place);
  const cancelAt = place.cancel_at === null ? release.dueAt : readNumber(place, 'cancel_at', 'an execution');
  const dueAt = Math.min(release.dueAt, cancelAt);
  // A signal that came behind it made it due earlier.
  const isDue = place.due_at === String(dueAt) || (release.status === 'waiting' && place.signals !== null);
  return readBoolean(place, 'is_free') && place.status === release.status && isDue;
}

function isSameStep({ steps, executionId }: CommitEntry, place: SqlRow): boolean {
  if (steps.length === 0 || place[`${OF_STEP}key`] === null) return false;
  const step = Object.fromEntries(STEP.map((column) => [column, place[OF_STEP + column] ?? null]));
  return isSame(() => readStep(step, executionId), lastOf(steps));
}

function lastOf(steps: readonly StepRecord[]): StepRecord {
  return steps.at(-1) as StepRecord;
}

function isSame(read: () => unknown, wanted: unknown): boolean {
  try {
    const found = read();
    return found !== undefined && equalJson(found as Json, JSON.parse(JSON.stringify(wanted)) as Json);
  } catch (error) {
    // A damaged row is not what the entry stored.
    if (isOrchestratorError(error, 'INTERNAL')) return false;
    throw error;
  }
}
