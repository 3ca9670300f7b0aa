/** Reads the filter of `executions.list`, and turns it into a query and the text for which a cursor is valid. */

import { invalid } from '../../engine/base/errors.ts';
import { refuseUnknownKeys } from '../../engine/base/read-options.ts';
import { EXECUTION_FILTERS, EXECUTION_STATUSES, type ExecutionStatus } from '../../engine/execution/execution.ts';
import { EXECUTION_ID, normalizeExecutionId } from '../../engine/execution/id.ts';
import { isTag, MAX_TAG_LENGTH, retryKeyOf } from '../../engine/execution/start-once.ts';
import { decodeCursor, encodeCursor, pageLimit } from '../../engine/storage/cursor.ts';
import type { ExecutionPosition, ExecutionQuery, ListOrder } from '../../engine/storage/storage.port.ts';

/** Which executions are meant. */
export interface ExecutionSelection {
  readonly ensemble?: string | undefined;
  readonly status?: ExecutionStatus | undefined;
  /** Only child executions of this execution. */
  readonly parentId?: string | undefined;
  /** Only executions with this tag. */
  readonly tag?: string | undefined;
  /** Only executions that were accepted at this instant or later: Unix ms or a Date. */
  readonly since?: number | Date | undefined;
  /** Only executions that were accepted before this instant: Unix ms or a Date. */
  readonly until?: number | Date | undefined;
  /** Only executions whose id, or one of whose tags, begins with this text of 1 to 128 characters. */
  readonly search?: string | undefined;
  /** Only executions that ended with an error of this code, such as `AGENT_FAILED`. */
  readonly errorCode?: string | undefined;
  /** `true`: only executions that failed or timed out, and that no other execution retries. */
  readonly unresolved?: boolean | undefined;
}

export interface ExecutionFilter extends ExecutionSelection {
  /** Only the execution that retries this one. */
  readonly retryOf?: string | undefined;
  /** Which execution is the first one, by `createdAt` and id. Default `newest`. */
  readonly order?: ListOrder | undefined;
  /** `false`: without inputs and outputs; `omitted` of a record names them. Default: those of at most 4 KiB. */
  readonly values?: boolean | undefined;
  /** Default 100, at most 250. A larger number counts as 250. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the previous page, with the same filter. */
  readonly cursor?: string | undefined;
}

/** A page to read. */
export interface ExecutionPage {
  readonly query: ExecutionQuery;
  /** Only the execution with this idempotency key. */
  readonly key: string | undefined;
  readonly values: boolean;
  /** How many executions the page has at most. */
  readonly size: number;
  cursorAfter(last: ExecutionPosition): string;
}

const FILTER_KEYS: readonly (keyof ExecutionFilter)[] = [
  ...EXECUTION_FILTERS,
  ...(['order', 'values', 'limit', 'cursor'] as const),
];
const ORDERS: readonly ListOrder[] = ['newest', 'oldest'];
/** The form of a cursor's entry: `createdAt` and id of the last execution of a page. */
const POSITION = new RegExp(`^-?\\d{1,16} ${EXECUTION_ID.source.slice(1)}`);

/** @throws INVALID_REQUEST for a value of a wrong form, INVALID_CURSOR, TypeError for an unknown key */
export function readExecutionFilter(given: ExecutionFilter): ExecutionPage {
  refuseUnknownKeys(given, FILTER_KEYS, 'executions.list');
  const {
    ensemble,
    status,
    tag,
    search,
    errorCode,
    order = 'newest',
    values = true,
    unresolved = false,
    cursor,
  } = given;
  checkStatus(status);
  for (const [name, text] of Object.entries({ tag, search, errorCode })) {
    if (text !== undefined && !isTag(text))
      throw invalid(`\`${name}\` must be text of 1 to ${MAX_TAG_LENGTH} characters, without control characters`);
  }
  if (!ORDERS.includes(order)) throw invalid(`\`order\` must be ${ORDERS.join(' or ')}`);
  for (const [name, flag] of Object.entries({ values, unresolved })) {
    if (typeof flag !== 'boolean') throw invalid(`\`${name}\` must be true or false`);
  }
  const filters = {
    ...{ errorCode, ...(order === 'oldest' && { order }), ...(unresolved && { unresolved }) },
    ...{ ensemble, status, tag, search: search && normalizeExecutionId(search) },
    parentId: given.parentId === undefined ? undefined : normalizeExecutionId(given.parentId),
    since: readInstant(given.since, 'since'),
    until: readInstant(given.until, 'until'),
  };
  const size = pageLimit(given.limit);
  const retryOf = given.retryOf === undefined ? undefined : normalizeExecutionId(given.retryOf);
  const filter = JSON.stringify({ ...filters, retryOf });
  const before = cursor === undefined ? undefined : toPosition(decodeCursor(cursor, filter, POSITION));
  const known = Object.entries({ ...filters, before }).filter(([, value]) => value !== undefined);
  return {
    query: { ...Object.fromEntries(known), limit: size + 1 },
    key: retryOf === undefined ? undefined : retryKeyOf(retryOf),
    values,
    size,
    cursorAfter: ({ createdAt, id }) => encodeCursor(`${createdAt} ${id}`, filter),
  };
}

function toPosition(entry: string): ExecutionPosition {
  const [createdAt = '', id = ''] = entry.split(' ');
  return { createdAt: Number(createdAt), id };
}

function checkStatus(status: ExecutionStatus | undefined): void {
  if (status === undefined || EXECUTION_STATUSES.includes(status)) return;
  throw invalid(`\`status\` must be one of ${EXECUTION_STATUSES.join(', ')}`);
}

/** @throws INVALID_REQUEST */
export function readInstant(given: number | Date | undefined, name: string): number | undefined {
  if (given === undefined) return undefined;
  const instant = given instanceof Date ? given.getTime() : given;
  if (Number.isSafeInteger(instant)) return instant;
  throw invalid(`\`${name}\` must be a whole number of ms since 1970, or a valid Date`);
}
