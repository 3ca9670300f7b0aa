/**
 * The fields of stored records and the columns that they are in, once for writing and for reading. A field that a record has and its
 * table lacks does not compile.
 */

import type { Json } from '../../../engine/base/json/json.ts';
import type { DeliveryState, NewDelivery } from '../../../engine/delivery/delivery.ts';
import type { StoredProgress } from '../../../engine/execution/execution-record.ts';
import type { ExecutionEnd, NewExecution, NewSignal, StepRecord } from '../../../engine/execution/stored-execution.ts';
import {
  damagedRow,
  type RowName,
  readBoolean,
  readJson,
  readNumber,
  readObject,
  readText,
  type StoredRow,
  toJsonColumn,
} from './columns.ts';

type Value = string | number | null;
type ToText = (text: string) => string;

/** @param T - the values of the field */
export interface Field<T> {
  readonly column: string;
  /** As Postgres calls it. */
  readonly type: 'text' | 'bigint' | 'integer' | 'double precision' | 'boolean';
  readonly isOptional?: true;
  /** @param toText - how the database stores text */
  write(value: T, toText: ToText): Value;
  /** @throws INTERNAL when the column is damaged */
  read(row: StoredRow, name: RowName): T;
}

/** The fields of a record; what is the same for all records of a read, or is read in another way, is left out. */
export type Fields<Record> = { readonly [Key in keyof Record]-?: Field<Exclude<Record[Key], undefined>> };

const text = <T extends string>(column: string): Field<T> => ({
  ...{ column, type: 'text' },
  write: (value, toText) => toText(value),
  read: (row, name) => readText(row, column, name) as T,
});
const number = (column: string, type: Field<number>['type'] = 'bigint'): Field<number> => ({
  ...{ column, type },
  write: (value) => value,
  read: (row, name) => readNumber(row, column, name),
});
const json = <T extends Json>(column: string): Field<T> => ({
  ...{ column, type: 'text' },
  write: toJsonColumn,
  read: (row, name) => readJson(row, column, name) as T,
});
const object = <T>(column: string): Field<T> => ({
  ...(json(column) as Field<never>),
  read: (row, name) => readObject(row, column, name) as T,
});
const texts = (column: string): Field<readonly string[]> => ({
  ...json<readonly string[]>(column),
  read(row, name) {
    const list = readJson(row, column, name);
    if (!Array.isArray(list) || !list.every((one) => typeof one === 'string')) throw damagedRow(name, column);
    return list;
  },
});
const optional = <T>(field: Field<T>): Field<T> => ({ ...field, isOptional: true });

/** An execution as it was accepted. */
export const ACCEPTED: Fields<Omit<NewExecution, 'dueSince'>> = {
  id: text('id'),
  ensemble: text('ensemble'),
  version: text('version'),
  trigger: object('started_by'),
  input: json('input'),
  seed: text('seed'),
  createdAt: number('created_at'),
  deadlineAt: optional(number('deadline_at')),
  retryOf: optional(text('retry_of')),
  idempotencyKey: optional(text('idempotency_key')),
  tags: optional(texts('tags')),
  limits: optional(json('limits') as Field<never>),
  startBy: optional(number('start_by')),
};

/** What the status of an execution shows of its acceptance. */
export const SUMMARY = {
  id: ACCEPTED.id,
  ensemble: ACCEPTED.ensemble,
  version: ACCEPTED.version,
  trigger: ACCEPTED.trigger,
  createdAt: ACCEPTED.createdAt,
};

export const STEP: Fields<StepRecord> = {
  key: text('key'),
  name: text('name'),
  status: text('status'),
  attempts: number('attempts', 'integer'),
  startedAt: number('started_at'),
  duration: number('duration', 'double precision'),
  retryAt: optional(number('retry_at')),
  note: optional({
    column: 'note',
    type: 'boolean',
    write: () => 1,
    read: (row) => (readBoolean(row, 'note') || undefined) as true,
  }),
  error: optional(object('error')),
  output: json('output'),
};

/** How far an execution has come, besides its status. */
export const PROGRESS: Fields<Omit<StoredProgress, 'status'>> = {
  startedAt: optional(number('started_at')),
  recoveries: number('recoveries', 'integer'),
  handover: optional(object('handover')),
  resumedAt: optional(number('resumed_at')),
  retriedBy: optional(text('retried_by')),
};

/** What is read of the progress of a claimed execution. */
export const HANDOVER = { handover: PROGRESS.handover, resumedAt: PROGRESS.resumedAt };

/** The columns of an execution that has ended. What is known of its waits and models is in `handover`. */
export const ENDED: Fields<Omit<ExecutionEnd, 'waited' | 'usage' | 'components' | 'moves' | 'completions'>> = {
  status: text('status'),
  output: json('output'),
  error: optional(object('error')),
  finishedAt: number('finished_at'),
  duration: number('duration', 'double precision'),
  agents: number('agents', 'integer'),
};

/** A signal of an execution that is known from the read. */
export const SIGNAL: Fields<Omit<NewSignal, 'executionId'>> = {
  id: text('id'),
  name: text('name'),
  payload: json('payload'),
  createdAt: number('created_at'),
};

/** @throws INTERNAL when a column is damaged */
export function readSignal(row: StoredRow, executionId: string): NewSignal {
  return { executionId, ...readFields(SIGNAL, row, `signal ${String(row.id)} of execution ${executionId}`) };
}

const SENT: Fields<Omit<NewDelivery, 'body'>> = {
  id: text('id'),
  executionId: text('execution'),
  ensemble: text('ensemble'),
  version: text('version'),
  notification: number('notification', 'integer'),
  event: text('event'),
  receiver: text('receiver'),
  createdAt: number('created_at'),
};

export const NEW_DELIVERY: Fields<NewDelivery> = { ...SENT, body: text('body') };

export const DELIVERY_STATE: Fields<DeliveryState> = {
  ...SENT,
  status: text('status'),
  attempts: number('attempts', 'integer'),
  attemptsBefore: number('attempts_before', 'integer'),
  dueAt: optional(number('due_at')),
  log: json<never>('log'),
};

/** @throws INTERNAL when a column is damaged */
export function readFields<Record>(fields: Fields<Record>, row: StoredRow, name: RowName): Record {
  const record: { [key: string]: unknown } = {};
  for (const key in fields) {
    const field = fields[key] as Field<unknown>;
    if (field.isOptional && row[field.column] === null) continue;
    const value = field.read(row, name);
    if (value !== undefined) record[key] = value;
  }
  return record as Record;
}

/** The values of the columns, in the order of the fields. */
export function writeFields<Record>(fields: Fields<Record>, record: Record, toText: ToText): Value[] {
  const values: Value[] = [];
  for (const key in fields) {
    const value = record[key];
    values.push(value === undefined ? null : (fields[key] as Field<unknown>).write(value, toText));
  }
  return values;
}

export function columnsOf(fields: object): string[] {
  return (Object.values(fields) as Field<unknown>[]).map(({ column }) => column);
}

/** The types of the columns, as Postgres calls them. */
export function typesOf(fields: object): string[] {
  return (Object.values(fields) as Field<unknown>[]).map(({ type }) => type);
}
