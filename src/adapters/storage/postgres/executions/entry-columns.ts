/** The columns that the parts of an entry are written to: their names, their types, and their values in an entry. */

import type { NewDelivery } from '../../../../engine/delivery/delivery.ts';
import { keptUntilEnd } from '../../../../engine/execution/limits/flow-limit.ts';
import type {
  CommitEntry,
  ExecutionEnd,
  NewExecution,
  StateChange,
  StepRecord,
} from '../../../../engine/execution/stored-execution.ts';
import { toHandoverColumn, toOptionalJsonColumn } from '../../sql/columns.ts';
import * as fields from '../../sql/fields.ts';
import { laterQueue, queueAtStart } from '../../sql/queues/admit-starts.ts';
import { type SqlParam, toArray } from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Counted } from '../tables/count-charges.ts';

/** Where the row of an execution is. */
export interface Place {
  readonly tid: string;
  readonly ref: number;
}

/** A part of an entry, with its entry. */
export interface EntryPart<Part> {
  readonly entry: CommitEntry;
  part: Part;
  /** The part's value as JSON, converted once because it can be large. */
  json: string;
  /** The row of its execution, as far as this process knows it. */
  at?: Place | undefined;
}

type Value = string | number | null;
export type Column<Part> = readonly [name: string, type: string, value: (entryPart: EntryPart<Part>) => Value];

const toOptionalText = (text: string | undefined) => (text === undefined ? null : toTextColumn(text));

/**
 * @param large - the field whose value is the `json` of a part
 * @returns columns that are null for an entry without the part
 */
function toPartColumns<Part>(of: fields.Fields<Part>, large?: keyof Part): Column<Part | undefined>[] {
  return (Object.entries(of) as [keyof Part, fields.Field<unknown>][]).map(([key, { column, type, write }]) => [
    column,
    type,
    ({ part, json }) => {
      const value = part?.[key];
      if (value === undefined) return null;
      return key === large ? json : write(value, toTextColumn);
    },
  ]);
}

/** The execution of a part. A part of a start has no epoch, because the statement starts it. */
export const FENCE: readonly Column<unknown>[] = [
  ['id', 'text', ({ entry }) => toTextColumn(entry.executionId)],
  ['epoch', 'integer', ({ entry }) => (entry.start ? null : entry.epoch)],
];

export const START: readonly Column<NewExecution>[] = [
  ...toPartColumns(fields.ACCEPTED, 'input'),
  ['status', 'text', ({ entry }) => entry.release?.status ?? 'running'],
  ['epoch', 'integer', ({ entry }) => entry.epoch],
  ['due_at', 'bigint', ({ entry }) => entry.release?.dueAt ?? null],
  ['parent_id', 'text', ({ part }) => toOptionalText(part.trigger.parentId)],
  ['root_id', 'text', ({ part }) => toOptionalText(part.trigger.rootId)],
  ['account', 'text', ({ entry: { charge } }) => (charge?.slots === undefined ? null : toTextColumn(charge.account))],
  ['retried', 'boolean', ({ part }) => (part.trigger.dryRun ? 'true' : null)],
  [
    'queue',
    'text',
    ({ entry, part: { limits } }) => toOptionalText(limits && queueAtStart(limits, entry.release === undefined)),
  ],
  ['queue_after_begin', 'text', ({ part: { limits } }) => toOptionalText(limits && laterQueue(limits))],
  ['kept_until_end', 'text', ({ part: { limits } }) => toOptionalText(limits && keptUntilEnd(limits))],
  ['handover', 'text', ({ entry }) => toOptionalJsonColumn(entry.release?.handover)],
];

const withNames = <Part>(columns: readonly Column<Part>[], names: readonly string[]) =>
  columns.filter(([name]) => names.includes(name));

/** What a start has that this process runs, and that has no key, tags, parent, charge or predecessor. */
export const FAST_START = withNames(START, [
  ...['id', 'ensemble', 'version', 'epoch', 'seed', 'started_by', 'created_at', 'deadline_at', 'input'],
]);
/** The columns that are null for such a start. */
export const RARE_START = START.filter((column) => column[0] !== 'status' && !FAST_START.includes(column));

/** The columns after those of a start, if one of them expects a document: the start is written only if the document has the tag. */
export const EXPECTS: readonly Column<unknown>[] = [
  ['document_kind', 'text', ({ entry }) => entry.expects?.kind ?? null],
  ['document_name', 'text', ({ entry }) => entry.expects?.name ?? null],
  ['document_tag', 'text', ({ entry }) => toOptionalText(entry.expects?.tag)],
];

/** What a start counts for its caller. */
export const CHARGE: readonly Column<Counted>[] = [
  ['id', 'text', ({ entry }) => toTextColumn(entry.executionId)],
  ['account', 'text', ({ part }) => toTextColumn(part.account)],
  ['period', 'text', ({ part }) => part.period],
  ['count', 'integer', ({ part }) => part.count],
  ['max', 'bigint', ({ part }) => part.max],
];

/** One tag of a start, as it is: it has no character that a driver would alter. */
export const TAG: readonly Column<string>[] = [
  ['id', 'text', ({ entry }) => toTextColumn(entry.executionId)],
  ['created_at', 'bigint', ({ entry }) => entry.start?.createdAt ?? null],
  ['tag', 'text', ({ part }) => part],
];

export const STEP: readonly Column<StepRecord>[] = [
  ...FENCE,
  ...toPartColumns(fields.STEP, 'output').filter(([name]) => name !== 'note'),
  ['note', 'boolean', ({ part }) => String(part.note ?? false)],
];

/** The fence of a part whose row is known. */
export const PLACE: readonly Column<unknown>[] = [
  ['tid', 'tid', ({ at }) => at?.tid ?? null],
  ['ref', 'bigint', ({ at }) => at?.ref ?? null],
  ['id', 'text', ({ entry }) => toTextColumn(entry.executionId)],
  ['epoch', 'integer', ({ entry }) => entry.epoch],
];
/** Whether the entry of a step also ends its execution. */
export const ENDS: Column<unknown> = ['ends', 'boolean', ({ entry }) => String(entry.end !== undefined)];
export const PLACED_STEP: readonly Column<StepRecord>[] = [...PLACE, ...STEP.slice(FENCE.length)];
/** What differs between results without an error. */
export const FAST_STEP: readonly Column<StepRecord>[] = [
  ...PLACE,
  ...withNames(STEP, ['key', 'name', 'started_at', 'duration', 'output']),
];

/** An end, or a release, which has no part. */
export const SETTLE: readonly Column<ExecutionEnd | undefined>[] = [
  ...FENCE,
  ['status', 'text', ({ entry, part }) => (part ?? entry.release)?.status ?? 'running'],
  ['due_at', 'bigint', ({ entry }) => entry.release?.dueAt ?? null],
  ['seen', 'integer', ({ entry }) => entry.release?.signals ?? null],
  ['waits_for', 'text', ({ entry }) => toOptionalJsonColumn(entry.release?.waitsFor?.map(toTextColumn))],
  ['handover', 'text', ({ entry }) => toHandoverColumn(entry)],
  ...toPartColumns(fields.ENDED, 'output').filter(([name]) => name !== 'status'),
  ['counted', 'text', ({ entry: { counted = null } }) => counted],
];

/** An end whose row is known. */
export const FAST_SETTLE: readonly Column<ExecutionEnd | undefined>[] = [
  ...PLACE,
  ...SETTLE.slice(FENCE.length).filter(([name]) => !['due_at', 'seen', 'waits_for'].includes(name)),
];

export const STATE: readonly Column<StateChange>[] = [
  ...FENCE,
  ['ensemble', 'text', ({ part }) => toTextColumn(part.ensemble)],
  ['expected', 'integer', ({ part }) => part.expectedVersion],
  ['updated_at', 'bigint', ({ part }) => part.updatedAt],
  ['value', 'text', ({ json }) => json],
];

/** A delivery. Its names are those of the table with a prefix, because `id` is that of the execution. */
export const DELIVERY: readonly Column<NewDelivery>[] = [
  ...FENCE,
  ...toPartColumns(fields.NEW_DELIVERY).map(([name, ...rest]): Column<NewDelivery> => [`new_${name}`, ...rest]),
  ['new_due_at', 'bigint', ({ part }) => part.createdAt],
];

/** The column after those of a part, if entries may change states: the part is written only if this state was changed. */
export const GATED: Column<unknown> = ['ensemble', 'text', ({ entry }) => toOptionalText(entry.state?.ensemble)];

/** A part as one value for each column. */
export function toRow<Part>(part: EntryPart<Part>, columns: readonly Column<Part>[]): SqlParam[] {
  return columns.map(([, , value]) => value(part));
}

/** Parts as one array for each column, and how many there are; nothing for no parts. */
export function toArrays<Part>(parts: readonly EntryPart<Part>[], columns: readonly Column<Part>[]): SqlParam[] {
  if (parts.length === 0) return [];
  return [...columns.map(([, , value]) => toArray(parts.map(value))), parts.length];
}
