/** `ensemble execution list`, `show` and `watch`: shows executions of a store or of a running server. */

import { readPages } from '../../engine/base/read-pages.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { parseDuration } from '../../engine/base/time/duration.ts';
import { readInstant } from '../../engine/base/time/read-instant.ts';
import {
  EXECUTION_FILTERS,
  EXECUTION_STATUSES,
  type Execution,
  type ExecutionStatus,
} from '../../engine/execution/execution.ts';
import type { ExecutionFilter } from '../../orchestrator/runs/execution-filter.ts';
import { summarizeWaits } from '../progress/describe-waits.ts';
import { describeExecution } from '../progress/show-execution.ts';
import { watchExecution } from '../progress/watch-execution.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import type { ServiceHost } from '../service/service.ts';
import { wrongUsage } from '../terminal/cli-error.ts';
import { onInterrupt } from '../terminal/interrupt.ts';
import type { Output } from '../terminal/output.ts';
import { type Column, formatTable, terminalWidth } from '../terminal/table.ts';
import { formatDuration, printJson } from '../terminal/text.ts';
import { formatDistance } from '../terminal/times.ts';

type Filters = { readonly [Name in (typeof EXECUTION_FILTERS)[number]]?: string };

export interface ExecutionListOptions extends PlaceOptions, Omit<Filters, 'parentId' | 'errorCode' | 'unresolved'> {
  /** The id of a parent execution. */
  readonly parent?: string;
  readonly error?: string;
  readonly unresolved?: boolean;
  readonly oldest?: boolean;
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
/** Only where a listed execution has tags. */
const TAGS: Column = { title: 'TAGS', shrinkTo: 8 };
const WAITS: Column = { title: 'WAITS FOR', shrinkTo: 16 };
const MAX_LIMIT = 10_000;
/** The largest number of steps that are shown. */
const MAX_STEPS = 10_000;

export async function listExecutions(
  options: ExecutionListOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const now = Date.now();
  const order = options.oldest ? ('oldest' as const) : undefined;
  const given: Readonly<Record<string, unknown>> = {
    ...options,
    parentId: options.parent,
    errorCode: options.error,
    status: readStatus(options.status),
    since: readTime(options.since, 'since', now),
    until: readTime(options.until, 'until', now),
  };
  const filter: ExecutionFilter = Object.fromEntries(EXECUTION_FILTERS.map((name) => [name, given[name]]));
  const wanted = readLimit(options.limit);
  const { items: executions, nextCursor } = await withService(options, host, (service) =>
    readPages('executions', (page) => service.executions.list({ ...filter, order, ...page }), wanted),
  );
  if (options.json) {
    output.print(`${printJson({ executions, nextCursor })}\n`);
    return 0;
  }
  if (executions.length === 0) {
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    output.say(isFiltered ? 'no matching executions\n' : 'no executions yet\n');
    return 0;
  }
  // A server of an earlier version sends no tags.
  const hasTags = executions.some(({ tags }) => tags?.length > 0);
  const waits = executions.map((record) => summarizeWaits(record, now));
  const isAnyWaiting = waits.some((text) => text !== '');
  const columns = [...COLUMNS, ...(hasTags ? [TAGS] : []), ...(isAnyWaiting ? [WAITS] : [])];
  const rows = executions.map((record, i) => [
    ...toCells(record, now),
    ...(hasTags ? [(record.tags ?? []).join(', ')] : []),
    ...(isAnyWaiting ? [waits[i] as string] : []),
  ]);
  output.print(formatTable(columns, rows, terminalWidth(host.process)));
  if (nextCursor !== undefined)
    output.say(`there are more; show them with --limit ${Math.min(MAX_LIMIT, wanted * 5)}\n`);
  return 0;
}

function toCells({ id, ensemble, status, startedAt, duration, dryRun }: Execution<unknown>, now: number): string[] {
  const started = startedAt === undefined ? '' : formatDistance(startedAt, now);
  return [
    id,
    ensemble,
    dryRun ? `${status} (dry)` : status,
    started,
    duration === undefined ? '' : formatDuration(duration),
  ];
}

export interface ExecutionShowOptions extends PlaceOptions {
  readonly json?: boolean;
}

export async function showExecution(
  id: string,
  options: ExecutionShowOptions & { readonly steps?: boolean },
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { record, found, atWork } = await withService(options, host, async ({ executions }) => ({
    record: await executions.get(id),
    found: options.steps ? await readPages('steps', (page) => executions.steps(id, page), MAX_STEPS) : undefined,
    // A server of an earlier version does not know it.
    atWork: options.json
      ? []
      : await executions.running(id).then(
          ({ steps }) => steps,
          () => [],
        ),
  }));
  if (options.json) {
    output.print(`${printJson({ ...record, steps: found?.items, nextCursor: found?.nextCursor })}\n`);
    return 0;
  }
  output.print(describeExecution(record, Date.now(), terminalWidth(host.process), { steps: found?.items, atWork }));
  if (found?.nextCursor !== undefined)
    output.say(`only the first ${MAX_STEPS.toLocaleString('en-US')} steps are shown\n`);
  return 0;
}

/** @returns 0 when the execution completed, 1 when it ended otherwise, 128 plus the signal's number when the user stopped watching */
export async function watch(
  id: string,
  options: ExecutionShowOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const stopping = new AbortController();
  const interrupt = onInterrupt(host.process, () => stopping.abort());
  try {
    const code = await withService(options, host, (service) =>
      watchExecution(service, id, { json: options.json === true, signal: stopping.signal }, output),
    );
    if (interrupt.exitCode === undefined) return code;
    output.say('stopped watching; the execution continues\n');
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

/** An instant, or a duration back from now. @returns Unix ms */
export function readTime(given: string | undefined, option: string, now: number): number | undefined {
  if (given === undefined) return undefined;
  const back = parseDuration(given);
  const instant = back === undefined ? readInstant(given) : now - back;
  if (instant !== undefined) return instant;
  const forms = 'a duration back from now such as 2h, an instant such as 2026-01-31T09:00:00Z, or Unix ms';
  throw wrongUsage(`--${option} must be ${forms}, not ${JSON.stringify(given)}`);
}

export function readLimit(given: string): number {
  if (/^[1-9]\d{0,4}$/.test(given) && Number(given) <= MAX_LIMIT) return Number(given);
  throw wrongUsage(`--limit must be a whole number from 1 to ${MAX_LIMIT}, not ${JSON.stringify(given)}`);
}
