/** `ensemble run`: runs one ensemble, shows its progress, and prints its output. */

import { messageOf } from '../../engine/base/errors.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import type { ExecutionHistory } from '../../engine/execution/execution-history.ts';
import { areTags, isOwnId, START_RULES } from '../../engine/execution/start-once.ts';
import { type AwaitedSignal, answerWaits } from '../progress/answer-waits.ts';
import { createLiveProgress, type ProgressDisplay, SHOW_CURSOR } from '../progress/live-progress.ts';
import { createPlainProgress } from '../progress/plain-progress.ts';
import { describeError } from '../progress/show-error.ts';
import { printPlan } from '../progress/show-plan.ts';
import { type FoundRun, openRun } from '../project/open-run.ts';
import { readEnv, readInput } from '../project/read-input.ts';
import { checkSignals, readSignals } from '../project/read-signals.ts';
import { type PlaceOptions, withService } from '../service/open-service.ts';
import * as start from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import { onInterrupt } from '../terminal/interrupt.ts';
import type { Output } from '../terminal/output.ts';
import { streamLogger } from '../terminal/stream-logger.ts';
import { count, formatDuration, oneLine, printJson } from '../terminal/text.ts';

export interface RunOptions extends PlaceOptions {
  readonly env: readonly string[];
  readonly input?: string;
  /** Each is a name, or a name and a payload. */
  readonly signal: readonly string[];
  readonly json?: boolean;
  readonly watch?: boolean;
  readonly id?: string;
  readonly tag: readonly string[];
  /** A module with the options of an app. */
  readonly app?: string;
  /** Runs no operation, and prints what would happen. */
  readonly dry?: boolean;
  /** The id of an execution whose results the steps of a dry run give. */
  readonly like?: string;
  readonly runScripts?: boolean;
}

export interface RunHost {
  readonly cwd: string;
  readonly process: NodeJS.Process;
}

const TICK_MS = 80;

/** @returns the exit code: 0, 1 when the execution did not complete, 128 plus the signal's number when the user cancelled it */
export async function run(target: string, options: RunOptions, output: Output, host: RunHost): Promise<number> {
  const given = readIdentity(options);
  checkDry(options);
  const logger = runLogger((text) => void host.process.stderr.write(text));
  const input = await readInput(options.input, host.cwd, host.process.stdin);
  const variables = { env: readEnv(options.env, host.process.env), logger };
  const found = await openRun(target, { ...variables, app: options.app }, options.dir, output, host.cwd);
  if (!found) return 1;
  const { name } = found;
  if (options.dry) return runDry(found, input, options, output, host);
  const orchestrator = start.startAlone(found.options);
  const definition = await definitionOf(orchestrator, name);
  const signals = await readSignals(options.signal, host, (given) => checkSignals(orchestrator, name, given));
  const clock = () => ({ monotonic: performance.now(), wall: Date.now() });
  const create = output.live ? createLiveProgress : createPlainProgress;
  const nameWidth = Math.min(32, longestAgentName(definition));
  const isShown = options.watch === true || !options.json;
  const { stream, colors } = output;
  const progress = isShown ? create({ stream, colors, now: clock, nameWidth, definition }) : undefined;
  output.watch(progress?.foreign);

  const showing = progress && show(orchestrator, progress);
  const terminal = host.process.stdin.isTTY && host.process.stderr.isTTY ? host.process : undefined;
  const answers = answerWaits(orchestrator, { signals, terminal, output, progress });
  const cancelling = new AbortController();
  const interrupt = onInterrupt(host.process, (again) => {
    if (again) return output.live ? void output.stream.write(SHOW_CURSOR) : undefined;
    host.process.stderr.write('cancelling; press Ctrl-C again to stop at once\n');
    cancelling.abort();
  });
  let record: Execution<unknown>;
  let waiting: readonly AwaitedSignal[] = [];
  try {
    const started = await orchestrator.start(name, input, { ...given, signal: cancelling.signal, events: false });
    const ended = started.result();
    waiting = (await Promise.race([ended.then(() => undefined), answers.stuck])) ?? [];
    record = waiting.length > 0 ? await orchestrator.executions.get(started.id) : await ended;
  } finally {
    answers.end();
    showing?.end();
    interrupt.release();
    output.watch(undefined);
  }
  if (definition.notifications?.length && interrupt.exitCode === undefined)
    await sendNotifications(orchestrator, record.id, output);
  await orchestrator.close({ grace: 0 });
  await found.store?.close();
  if (options.json) output.print(`${printJson(record)}\n`);
  if (waiting.length > 0) explainWaits(record, waiting, output);
  else if (!options.json) printRecord(record, output);
  for (const signal of answers.unused()) output.say(`no \`wait\` took the signal ${signal} of --signal\n`);
  if (interrupt.exitCode !== undefined && record.status === 'cancelled') return interrupt.exitCode;
  return record.status === 'completed' ? 0 : 1;
}

/** @throws CliError for options that a dry run has not, or that only it has */
function checkDry({ dry, like, runScripts, signal, id, url, token, storage }: RunOptions): void {
  if (!dry && (like !== undefined || runScripts))
    throw wrongUsage('--like and --run-scripts are for a dry run: add --dry');
  if (like === undefined && (url !== undefined || token !== undefined || storage !== undefined))
    throw wrongUsage('--url, --token and --storage say where the execution of --like is; `ensemble run` keeps nothing');
  if (dry && (signal.length > 0 || id !== undefined))
    throw wrongUsage('--signal and --id have no effect in a dry run: leave them out');
}

async function runDry(
  { name, options: of, store }: FoundRun,
  input: unknown,
  options: RunOptions,
  output: Output,
  host: RunHost,
): Promise<number> {
  const { like, runScripts, json, tag: tags } = options;
  const known =
    like === undefined ? undefined : await withService(options, host, ({ executions }) => executions.history(like));
  const orchestrator = start.startAlone(of, known && withHistory(start.memoryStorage(), known));
  await definitionOf(orchestrator, name);
  const given = options.input === undefined && known ? undefined : input;
  const dryRun = { ...(known && { like: known.execution.id }), ...(runScripts && { runScripts }) };
  const record = await orchestrator.execute(name, given, { dryRun, tags });
  await orchestrator.close({ grace: 0 });
  await store?.close();
  if (json) output.print(`${printJson(record)}\n`);
  else printPlan(record, output);
  return record.status === 'completed' ? 0 : 1;
}

/** The storage, in which an execution of another one can be read: what `like` of a dry run needs. */
function withHistory(storage: start.Storage, { execution, status, steps }: ExecutionHistory): start.Storage {
  const { executions } = storage;
  const { id, ensemble, version, trigger, createdAt } = execution;
  return {
    ...storage,
    executions: {
      ...executions,
      getAccepted: (asked) => (asked === id ? execution : executions.getAccepted(asked)),
      getStatus: (asked) =>
        asked === id ? { id, ensemble, version, status, trigger, createdAt } : executions.getStatus(asked),
      listSteps: (asked, page) =>
        asked === id ? (page.after === undefined ? steps : []) : executions.listSteps(asked, page),
    },
  };
}

/** How long a run waits for its notifications, ms. */
const NOTIFIED_MS = 15_000;

/** Sends what the execution notifies of, before the process ends. */
async function sendNotifications({ deliveries }: start.Orchestrator, execution: string, output: Output): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, NOTIFIED_MS);
  });
  await Promise.race([deliveries.deliverDue(), late]);
  clearTimeout(timer);
  const all = await deliveries.list({ execution, limit: 250 });
  const count = all.deliveries.filter(({ status }) => status !== 'succeeded').length;
  if (count > 0)
    output.say(
      `notifications that were not delivered: ${count}; \`ensemble run\` keeps nothing, so they are not sent again\n`,
    );
}

const SHOWN_FAILURES: ReadonlySet<string | undefined> = new Set([
  ...['attempt failed', 'execution failed', 'execution timed out'],
]);

/** Leaves out what the progress and the report show, and the fields that are equal in all lines. */
function runLogger(write: (text: string) => void): start.Logger {
  const logger = streamLogger(write);
  return {
    ...logger,
    info() {},
    warn: (fields, message) => (SHOWN_FAILURES.has(message) ? undefined : logger.warn(fields, message)),
    // A script logs with a child of this logger.
    child: (fields) => streamLogger(write, { agent: (fields as { readonly agent?: string }).agent }),
  };
}

/** @throws CliError for an id or a tag that no execution can have */
function readIdentity({ id, tag: tags }: RunOptions): { readonly id?: string; readonly tags: readonly string[] } {
  if (id !== undefined && !isOwnId(id)) throw wrongUsage(`--id: ${START_RULES.id}`);
  if (!areTags(tags)) throw wrongUsage(`--tag: ${START_RULES.tags}`);
  return id === undefined ? { tags } : { id, tags };
}

/** @throws CliError with the names of the project's ensembles, when none has this name */
async function definitionOf(orchestrator: start.Orchestrator, name: string): Promise<EnsembleDefinition> {
  try {
    return (await orchestrator.ensembles.get(name)).definition;
  } catch (error) {
    const { ensembles, nextCursor } = await orchestrator.ensembles.list({ limit: 10 });
    const names = ensembles.map((item) => item.name).join(', ');
    throw new CliError(`${messageOf(error)}\nThis project has: ${names}${nextCursor === undefined ? '' : ', ...'}`);
  }
}

const SHOWN_EVENTS = [
  ...(['agent.started', 'agent.retrying', 'agent.completed', 'agent.failed', 'agent.skipped'] as const),
  ...(['foreach.started', 'step.waiting', 'step.continued', 'signal.taken', 'child.started', 'child.ended'] as const),
];

function show(orchestrator: start.Orchestrator, progress: ProgressDisplay): { end(): void } {
  // Shows only the first execution: its child executions have flows of their own.
  let id: string | undefined;
  orchestrator.on('execution.started', ({ data }) => {
    id ??= data.id;
  });
  for (const kind of SHOWN_EVENTS) {
    orchestrator.on(kind, (event) => {
      if (event.data.executionId === id) progress.update(event);
    });
  }
  const timer = setInterval(() => progress.tick(), TICK_MS);
  return {
    end() {
      clearInterval(timer);
      progress.finish();
    },
  };
}

/** Says what the run waits for, and how to answer. */
function explainWaits(
  { ensemble }: Execution<unknown>,
  waiting: readonly AwaitedSignal[],
  { colors, say }: Output,
): void {
  const names = [...new Set(waiting.map(({ signal }) => signal))];
  const [first = ''] = names;
  say(
    `${colors.red('✗')} ${ensemble} waits for ${names.map((name) => `the signal ${name}`).join(' and ')}, and nothing here sends it\n`,
  );
  say(
    `  Answer in this command: --signal '${first}={"key": "value"}' (JSON; --signal ${first} sends null), or run it in a terminal, which asks.\n`,
  );
  say(
    '  `ensemble run` keeps an execution in memory only, so this one ends here. `ensemble serve` keeps executions: there,\n',
  );
  say(`  \`ensemble execution signal ID ${first} --payload '{"key": "value"}'\` answers.\n`);
}

function printRecord(record: Execution<unknown>, { colors, print, say }: Output): void {
  const { status, error, ensemble, metrics, duration = 0 } = record;
  const facts = `${formatDuration(duration)}, ${count(metrics.agents, 'agent')}`;
  if (status === 'completed') say(`${colors.green('✓')} ${ensemble} completed in ${facts}\n`);
  else {
    const where = error?.agent === undefined ? '' : ` at ${error.agent}`;
    const how = status === 'timed_out' ? 'timed out' : status;
    const why = error && status !== 'cancelled' ? `: ${oneLine(error.message)}` : '';
    say(`${colors.red('✗')} ${ensemble} ${how}${where} after ${facts}${why}\n`);
  }
  if (error) for (const line of describeError(error)) say(`    ${line}\n`);
  if (status === 'completed') print(`${printJson(record.output)}\n`);
}

/** The columns of the longest name of an agent. @param definition - in its current form: steps are maps with `agent` and perhaps `name` */
function longestAgentName(definition: unknown): number {
  if (typeof definition !== 'object' || definition === null) return 0;
  const { agent, name } = definition as { readonly agent?: unknown; readonly name?: unknown };
  const own = typeof agent === 'string' ? (typeof name === 'string' ? name : agent).length : 0;
  return Object.values(definition).reduce<number>((longest, value) => Math.max(longest, longestAgentName(value)), own);
}
