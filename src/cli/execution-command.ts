/** `ensemble execution`: what ran and how it went, from a store or from a running server. */

import { EXECUTION_STATUSES, type Execution, type ExecutionStatus } from '../engine/model/execution.ts';
import { suggestName } from '../engine/suggest-name.ts';
import { wrongUsage } from './cli-error.ts';
import { onInterrupt } from './interrupt.ts';
import { type PlaceOptions, withService } from './open-service.ts';
import type { Output } from './output.ts';
import type { Service, ServiceHost } from './service.ts';
import { describeExecution } from './show-execution.ts';
import { type Column, formatTable, terminalWidth } from './table.ts';
import { formatDuration, printJson } from './text.ts';
import { formatDistance } from './times.ts';
import { watchExecution } from './watch-execution.ts';

export interface ExecutionListOptions extends PlaceOptions {
  readonly ensemble?: string;
  readonly status?: string;
  /** Id of an execution: those that it started. */
  readonly parent?: string;
  readonly limit: string;
  readonly json?: boolean;
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'ENSEMBLE', shrinkTo: 8 },
  { title: 'STATUS' },
  { title: 'STARTED' },
  { title: 'DURATION' },
];
/** Most that one page holds. */
const PAGE = 250;
const MOST = 10_000;

/** Newest first. */
export async function listExecutions(
  options: ExecutionListOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const filter = { ensemble: options.ensemble, status: readStatus(options.status), parentId: options.parent };
  const wanted = readLimit(options.limit);
  const { executions, nextCursor } = await withService(options, host, (service) => readPages(service, filter, wanted));
  if (options.json) {
    output.print(`${printJson({ executions, ...(nextCursor !== undefined && { nextCursor }) })}\n`);
    return 0;
  }
  if (executions.length === 0) {
    output.say(filter.ensemble || filter.status || filter.parentId ? 'no such executions\n' : 'no executions yet\n');
    return 0;
  }
  const now = Date.now();
  const rows = executions.map(({ id, ensemble, status, startedAt, duration }) => [
    id,
    ensemble,
    status,
    startedAt === undefined ? '' : formatDistance(startedAt, now),
    duration === undefined ? '' : formatDuration(duration),
  ]);
  output.print(formatTable(COLUMNS, rows, terminalWidth(host.process)));
  if (nextCursor !== undefined) output.say(`There are more; show them with --limit ${Math.min(MOST, wanted * 5)}\n`);
  return 0;
}

interface Page {
  readonly executions: readonly Execution<unknown>[];
  readonly nextCursor?: string;
}

async function readPages({ executions }: Service, filter: object, wanted: number): Promise<Page> {
  const found: Execution<unknown>[] = [];
  let cursor: string | undefined;
  do {
    const limit = Math.min(PAGE, wanted - found.length);
    const page: Page = await executions.list({ ...filter, limit, ...(cursor !== undefined && { cursor }) });
    found.push(...page.executions);
    cursor = page.nextCursor;
  } while (cursor !== undefined && found.length < wanted);
  return cursor === undefined ? { executions: found } : { executions: found, nextCursor: cursor };
}

export interface ExecutionShowOptions extends PlaceOptions {
  readonly json?: boolean;
}

export async function showExecution(
  id: string,
  options: ExecutionShowOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const record = await withService(options, host, ({ executions }) => executions.get(id));
  if (options.json) output.print(`${printJson(record)}\n`);
  else output.print(describeExecution(record, Date.now(), terminalWidth(host.process)));
  return 0;
}

/** @returns 0 when it completed, 1 when it ended otherwise, 128 and the signal's number when watching was broken off */
export async function watch(
  id: string,
  options: ExecutionShowOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const leaving = new AbortController();
  const interrupt = onInterrupt(host.process, () => leaving.abort());
  try {
    const code = await withService(options, host, (service) =>
      watchExecution(service, id, { json: options.json === true, signal: leaving.signal }, output),
    );
    if (interrupt.exitCode === undefined) return code;
    output.say('no longer watching; the execution goes on\n');
    return interrupt.exitCode;
  } finally {
    interrupt.release();
  }
}

function readStatus(given: string | undefined): ExecutionStatus | undefined {
  const status = EXECUTION_STATUSES.find((one) => one === given);
  if (status !== undefined || given === undefined) return status;
  const near = suggestName(given, EXECUTION_STATUSES);
  const hint = near === undefined ? `one of ${EXECUTION_STATUSES.join(', ')}` : `did you mean ${near}?`;
  throw wrongUsage(`there is no status ${JSON.stringify(given)}; ${hint}`);
}

function readLimit(given: string): number {
  if (/^[1-9]\d{0,4}$/.test(given) && Number(given) <= MOST) return Number(given);
  throw wrongUsage(`--limit must be a whole number from 1 to ${MOST}, not ${JSON.stringify(given)}`);
}
