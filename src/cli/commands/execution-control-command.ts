/** `ensemble execution cancel`, `pause`, `resume`, `retry`, `move` and `signal`: what changes executions. */

import { isOrchestratorError } from '../../engine/base/errors.ts';
import { withoutUndefined } from '../../engine/base/without-undefined.ts';
import { type Execution, type ExecutionStatus, isFinal } from '../../engine/execution/execution.ts';
import type { Moves } from '../../orchestrator/change/move.ts';
import { readInput } from '../project/read-input.ts';
import { withService } from '../service/open-service.ts';
import type { ServiceHost } from '../service/service.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { count, oneLine, printJson } from '../terminal/text.ts';
import type { ExecutionShowOptions } from './execution-command.ts';

/** What changes an execution, for the audit log. */
export interface ChangeCommandOptions extends ExecutionShowOptions {
  readonly reason?: string;
}

export async function cancelExecution(
  id: string,
  options: ChangeCommandOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const record = await withService(options, host, ({ executions }) =>
    executions.cancel(id, { reason: options.reason }),
  );
  const state = isFinal(record.status) ? 'is cancelled' : `is being cancelled; it is still ${oneLine(record.status)}`;
  return tellChange(record, state, options, output);
}

/** @param state - of the execution after the change, such as `is cancelled` */
function tellChange(record: Execution<unknown>, state: string, { json }: ExecutionShowOptions, output: Output): number {
  if (json) output.print(`${printJson(record)}\n`);
  else output.say(`${output.colors.green('✓')} execution ${oneLine(idOf(record))} ${state}\n`);
  return 0;
}

export interface PauseCommandOptions extends ChangeCommandOptions {
  readonly ensemble?: string;
  readonly all?: boolean;
}

/** One execution, those of an ensemble, or everything. */
export async function pauseExecutions(
  id: string | undefined,
  options: PauseCommandOptions,
  output: Output,
  host: ServiceHost,
  action: 'pause' | 'resume',
): Promise<number> {
  const { ensemble, all = false, json = false } = options;
  if ([id !== undefined, ensemble !== undefined, all].filter(Boolean).length !== 1)
    throw wrongUsage('name what is meant: an id, --ensemble NAME, or --all');
  if (id !== undefined) return pauseExecution(id, options, output, host, action);
  const target = ensemble === undefined ? ({ all: true } as const) : { ensemble };
  const found = await withService(options, host, ({ executions }) =>
    executions[`${action}All`](target, { reason: options.reason }),
  );
  if (json) output.print(`${printJson(found)}\n`);
  else {
    const what = ensemble === undefined ? 'everything' : `ensemble ${oneLine(ensemble)}`;
    const done = action === 'pause' ? 'is paused, with what is started later' : 'is not paused any more';
    output.say(`${output.colors.green('✓')} ${what} ${done}; ${count(found.changed, 'execution')} changed\n`);
  }
  return 0;
}

async function pauseExecution(
  id: string,
  options: ChangeCommandOptions,
  output: Output,
  host: ServiceHost,
  action: 'pause' | 'resume',
): Promise<number> {
  const record = await withService(options, host, ({ executions }) =>
    executions[action](id, { reason: options.reason }),
  );
  const { status } = record;
  const isDone = action === 'pause' ? status === 'paused' : status !== 'paused';
  const state = isDone
    ? `is ${oneLine(status)}`
    : action === 'pause'
      ? `is being paused; it is still ${oneLine(status)}`
      : 'is still paused, with its ensemble';
  return tellChange(record, state, options, output);
}

export interface MoveCommandOptions extends ExecutionShowOptions {
  readonly ensemble?: string;
  readonly status?: string;
  readonly tag?: string;
  readonly search?: string;
  readonly to?: string;
  /** Each is `old=new`. */
  readonly map: readonly string[];
  readonly dry?: boolean;
}

/** @returns 1 if an execution was refused */
export async function moveExecutions(
  id: string | undefined,
  options: MoveCommandOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { ensemble, status, tag, search, to, dry = false } = options;
  const map: Record<string, string> = {};
  for (const one of options.map) {
    const [from, name, more] = one.split('=');
    if (!from || !name || more !== undefined) throw wrongUsage(`--map takes OLD=NEW, not ${one}`);
    map[from] = name;
  }
  const filter = { id, ensemble, status: status as ExecutionStatus | undefined, tag, search };
  const given = withoutUndefined(filter);
  if (Object.keys(given).length === 0)
    throw wrongUsage('name the executions: an id, or --ensemble, --status, --tag or --search');
  const target = to ?? (options.map.length > 0 ? undefined : 'latest');
  const move = {
    ...given,
    ...(target !== undefined && { to: target }),
    ...(options.map.length > 0 && { map }),
    ...(dry && { dryRun: true }),
  };
  const moves = await withService(options, host, ({ executions }) => executions.move(move), { ensembles: true });
  if (options.json) output.print(`${printJson(moves)}\n`);
  else printMoves(moves, dry, output);
  return moves.refused > 0 ? 1 : 0;
}

function printMoves(
  { matched, moved, unchanged, refused, refusals }: Moves,
  dry: boolean,
  { colors, print, say }: Output,
): void {
  for (const { executionId, at, reason } of refusals) print(`${executionId}  ${at}: ${oneLine(reason)}\n`);
  const more = refused > refusals.length ? `; the first ${refusals.length} of them are listed` : '';
  const mark = refused > 0 ? colors.red('✗') : colors.green('✓');
  const done = dry ? 'can be moved' : 'moved';
  say(
    `${mark} of ${count(matched, 'execution')}: ${moved} ${done}, ${unchanged} unchanged, ${refused} refused${more}\n`,
  );
  if (unchanged > 0) say('  unchanged: they have the definition already, or have ended\n');
}

export interface RetryCommandOptions extends ChangeCommandOptions {
  readonly from?: string;
  readonly definition?: string;
  readonly newKeys?: true;
  readonly input?: string;
}

/** Prints the id of the newest execution of the chain on stdout. */
export async function retryExecution(
  id: string,
  options: RetryCommandOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { newKeys, from, definition } = options;
  const given =
    options.input === undefined ? {} : { input: await readInput(options.input, host.cwd, host.process.stdin) };
  const retry = {
    ...{ ...given, ...(newKeys && { newKeys }), reason: options.reason },
    ...{ ...(from !== undefined && { from }), ...(definition !== undefined && { definition }) },
  };
  const record = await withService(options, host, ({ executions }) => executions.retry(id, retry), {
    // The newest definition may be one of the project.
    ...(definition === undefined ? { scripts: true } : { ensembles: true }),
  }).catch(explainRetry);
  if (options.json) {
    output.print(`${printJson(record)}\n`);
    return 0;
  }
  output.print(`${oneLine(idOf(record))}\n`);
  if (idOf(record) === id) {
    output.say(`execution ${oneLine(id)} is ${oneLine(record.status)}: there is nothing to retry\n`);
    return 0;
  }
  const queued = record.status === 'queued' ? '; it is queued until a server has capacity for it' : '';
  output.say(
    `${output.colors.green('✓')} execution ${oneLine(idOf(record))} retries ${oneLine(record.retryOf ?? id)}${queued}\n`,
  );
  return 0;
}

export interface CompleteCommandOptions extends ChangeCommandOptions {
  readonly output?: string;
}

/** Gives a step its result by hand. Prints the id of the execution that continues on stdout. */
export async function completeStep(
  id: string,
  key: string,
  options: CompleteCommandOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const about = { option: '--output', empty: null };
  const result = await readInput(options.output, host.cwd, host.process.stdin, about);
  const record = await withService(
    options,
    host,
    ({ executions }) => executions.complete(id, key, result, { reason: options.reason }),
    { scripts: true },
  ).catch(explainRetry);
  if (!options.json) output.print(`${oneLine(idOf(record))}\n`);
  const retries = idOf(record) === id ? '' : `; it retries ${oneLine(id)}`;
  return tellChange(
    record,
    `has the result of ${oneLine(key)}, and is ${oneLine(record.status)}${retries}`,
    options,
    output,
  );
}

export interface SignalCommandOptions extends ExecutionShowOptions {
  readonly payload?: string;
  readonly idempotencyKey?: string;
}

export async function signalExecution(
  id: string,
  name: string,
  options: SignalCommandOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const { idempotencyKey } = options;
  const about = { option: '--payload', empty: null };
  const payload = await readInput(options.payload, host.cwd, host.process.stdin, about);
  const given = idempotencyKey === undefined ? {} : { idempotencyKey };
  const record = await withService(options, host, ({ executions }) => executions.signal(id, name, payload, given));
  if (options.json) {
    output.print(`${printJson(record)}\n`);
    return 0;
  }
  output.say(
    `${output.colors.green('✓')} signal ${name} is stored for execution ${oneLine(idOf(record))}; it is ${oneLine(record.status)}\n`,
  );
  return 0;
}

/** For a token without `read:executions`, a server returns only the id and the status. */
function idOf(record: Execution<unknown> | { readonly executionId: string }): string {
  return 'executionId' in record ? record.executionId : record.id;
}

function explainRetry(error: unknown): never {
  if (!isOrchestratorError(error, 'NOT_CONFIGURED')) throw error;
  throw new CliError(
    `${error.message}\nhelp: name the project of the execution with --dir, or a server of that project with --url`,
  );
}
