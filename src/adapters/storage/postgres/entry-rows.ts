/** The parts of entries as rows of parameters, in the order of the columns that the commit's statements name. */

import type {
  CommitEntry,
  ExecutionEnd,
  NewDelivery,
  NewExecution,
  StateChange,
  StepRecord,
} from '../../../engine/model/stored-execution.ts';
import { toJsonColumn, toOptionalJsonColumn } from '../sql/columns.ts';
import { toText } from './columns.ts';
import type { Owned } from './plan-writes.ts';
import { type SqlParam, toArray } from './sql-client.ts';

export type Row = (string | number | null)[];

export interface ToRow<Part> {
  (owned: Owned<Part>): Row;
  /** How many columns it has. */
  readonly width: number;
}

const withWidth = <Part>(width: number, toRow: (owned: Owned<Part>) => Row): ToRow<Part> =>
  Object.assign(toRow, { width });

export const startRow: ToRow<NewExecution> = withWidth(14, ({ entry, part, json }) => {
  const { id, ensemble, version, seed, trigger, createdAt, deadlineAt = null, retryOf } = part;
  const { epoch, release } = entry;
  const { parentId, rootId } = trigger;
  const from = retryOf === undefined ? null : toText(retryOf);
  // biome-ignore format: a value for each column
  return [
    toText(id), toText(ensemble), toText(version), release?.status ?? 'running', epoch, toText(seed),
    toOptionalJsonColumn(trigger), createdAt, deadlineAt, from, release?.dueAt ?? null, json,
    parentId === undefined ? null : toText(parentId), rootId === undefined ? null : toText(rootId),
  ];
});

/** A step without what it is fenced by. */
export const partRow: ToRow<StepRecord> = withWidth(10, ({ part, json }) => {
  const { key, name, status, attempts, startedAt, duration, retryAt = null, note = false, error } = part;
  const failure = toOptionalJsonColumn(error);
  return [toText(key), toText(name), status, attempts, startedAt, duration, retryAt, String(note), failure, json];
});

/** The result of a first attempt, without what it is fenced by. */
export const resultPartRow: ToRow<StepRecord> = withWidth(5, ({ part, json }) => {
  const { key, name, startedAt, duration } = part;
  return [toText(key), toText(name), startedAt, duration, json];
});

export const stepRow: ToRow<StepRecord> = withWidth(12, (owned) => [
  ...[toText(owned.entry.executionId), epochOf(owned.entry)],
  ...partRow(owned),
]);

export const resultRow: ToRow<StepRecord> = withWidth(7, ({ entry, part, json }) => {
  const { key, name, startedAt, duration } = part;
  return [toText(entry.executionId), epochOf(entry), toText(key), toText(name), startedAt, duration, json];
});

export const settleRow: ToRow<ExecutionEnd | undefined> = withWidth(11, ({ entry, part: end, json }) => {
  const id = toText(entry.executionId);
  const epoch = epochOf(entry);
  if (!end) {
    const { release } = entry;
    const { status = 'running', dueAt = null, signals = null, waitsFor } = release ?? {};
    const names = toOptionalJsonColumn(waitsFor?.map(toText));
    return [id, epoch, status, dueAt, null, null, null, signals, names, null, null];
  }
  const { status, finishedAt, duration, agents, error } = end;
  return [id, epoch, status, null, finishedAt, duration, agents, null, null, toOptionalJsonColumn(error), json];
});

export const stateRow: ToRow<StateChange> = withWidth(6, ({ entry, part, json }) => {
  const { ensemble, expectedVersion, updatedAt } = part;
  return [toText(entry.executionId), epochOf(entry), toText(ensemble), expectedVersion, updatedAt, json];
});

export const deliveryRow: ToRow<NewDelivery> = withWidth(8, ({ entry, part, json }) => {
  const { id, event, target, createdAt, dueAt } = part;
  const about = [toText(id), toText(event), toJsonColumn(target), json, createdAt, dueAt];
  return [toText(entry.executionId), epochOf(entry), ...about];
});

/** The row with the state that its entry stands and falls with. */
export function gated<Part>(toRow: ToRow<Part>): ToRow<Part> {
  return withWidth(toRow.width + 1, (owned) => {
    const { state } = owned.entry;
    return [...toRow(owned), state ? toText(state.ensemble) : null];
  });
}

/** What belongs to a start has no epoch to look for: it stands and falls with the row that is started. */
function epochOf({ start, epoch }: CommitEntry): number | null {
  return start ? null : epoch;
}

/** Parts as one array a column. */
export function toArrays<Part>(parts: readonly Owned<Part>[], toRow: ToRow<Part>): SqlParam[] {
  const rows = parts.map(toRow);
  const arrays = new Array<SqlParam>(toRow.width);
  for (let column = 0; column < toRow.width; column++) {
    arrays[column] = toArray(rows.map((row) => row[column] as Row[number]));
  }
  return arrays;
}
