/** `ensemble serve`: serves a project over HTTP until SIGINT or SIGTERM. */

import { realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isOrchestratorError, messageOf } from '../../engine/base/errors.ts';
import { readPages } from '../../engine/base/read-pages.ts';
import { createTicks } from '../../engine/base/time/cron.ts';
import type { EnsembleDefinition } from '../../engine/ensemble/ensemble.ts';
import { requireProject } from '../project/find-target.ts';
import { printIssue } from '../project/print-issues.ts';
import { readEnv } from '../project/read-input.ts';
import { curlLine, TOKEN_VARIABLE } from '../service/curl-line.ts';
import { type HttpServer, startHttpServer } from '../service/http-server.ts';
import { type LiveProject, startLiveProject } from '../service/live-project.ts';
import { nameOfStore, openStore, ownStore, readStorage } from '../service/open-store.ts';
import { reloadModules } from '../service/reload-modules.ts';
import type { ServiceHost } from '../service/service.ts';
import { watchFiles } from '../service/watch-files.ts';
import * as start from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import { onInterrupt } from '../terminal/interrupt.ts';
import type { Output } from '../terminal/output.ts';
import { streamLogger } from '../terminal/stream-logger.ts';
import { count, oneLine } from '../terminal/text.ts';
import { formatDistance } from '../terminal/times.ts';

export interface ServeOptions {
  readonly dir?: string;
  readonly port: string;
  readonly host: string;
  readonly storage?: string;
  readonly env: readonly string[];
  readonly watch?: boolean;
  readonly dashboard?: boolean;
}

const ADMIN = { name: 'admin', scopes: ['admin'], plan: 'enterprise' } as const;
/** The time that running executions get to end. */
const GRACE_MS = 25_000;
/** How many names of ensembles are printed at the start. */
const SHOWN_NAMES = 5;
/** What follows from a problem in a changed project. */
const UNCHANGED = 'the service continues without the change';
/** The time that open responses get after `GRACE_MS`, such as event streams for their last event. */
const LAST_RESPONSES = { openMs: 1_000, graceMs: 4_000 };

/** @returns the exit code: 0 after a graceful stop, 1 when the project has problems */
export async function serve(
  dir: string | undefined,
  options: ServeOptions,
  output: Output,
  { cwd, process }: ServiceHost,
): Promise<number> {
  const port = readPort(options.port);
  if (dir !== undefined && options.dir !== undefined) throw wrongUsage('the project is named twice; leave out --dir');
  const directory = await findProject(cwd, dir ?? options.dir);
  const choice = options.storage === undefined ? undefined : readStorage(options.storage, cwd);
  const write = (line: string) => void process.stderr.write(`${line}\n`);
  const reloads = options.watch ? reloadModules(await realpath(directory)) : undefined;
  const open = (query?: string) => openProject(directory, options, output, { cwd, process }, query);
  const found = await open();
  if (!found) return 1;
  const preset = readPreset(process.env[TOKEN_VARIABLE], found.brand);
  const used = choice ?? (found.storage ? undefined : ownStore(directory));
  const storage = used ? await openStore(used) : found.storage;
  const store = used ? nameOfStore(used, cwd) : 'as in the config';
  let server: HttpServer | undefined;
  // Responses end before the storage closes: an event stream reads its last event from the storage.
  const last = async () => server?.drain(LAST_RESPONSES);
  const { dashboard = false } = options;
  const live = startLiveProject(found, { storage, last, isReplaceable: reloads !== undefined, dashboard });
  const { orchestrator, listener } = live;
  let stopWatching: (() => Promise<void>) | undefined;

  let stop: () => void = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const strays = logStrays(process, (line) => write(stamp(line)));
  const interrupt = onInterrupt(process, (again) => {
    if (again) return;
    write('stopping: running executions get 25 s to end; press Ctrl-C again to stop at once');
    stop();
  });
  try {
    await ready(orchestrator, store);
    server = await startHttpServer({ host: options.host, port, listener, log: (line) => write(stamp(line)) });
    const token = preset && (await acceptPreset(orchestrator, preset));
    output.print(
      await describeService(orchestrator, server, {
        store,
        token,
        dashboard,
        servesSchedules: found.schedules ?? true,
      }),
    );
    if (reloads) {
      const reload = () => reloadProject(live, () => open(reloads.next()), output);
      stopWatching = await watchFiles(directory, reload);
      write('watching the files of the project');
    }
    await stopped;
    await stopWatching?.();
    server.stop();
    await live.close(GRACE_MS);
    write('stopped');
    return 0;
  } catch (error) {
    await stopWatching?.();
    await live.close(0);
    throw error;
  } finally {
    interrupt.release();
    strays.release();
  }
}

/** What a script of the project throws or rejects after its call has ended is logged. It never ends the service. */
function logStrays(process: NodeJS.Process, log: (line: string) => void): { release(): void } {
  const listener = (thrown: unknown) => {
    const [first = '', place = ''] = (thrown instanceof Error ? (thrown.stack ?? '') : '').split('\n');
    const where = place === '' ? '' : ` (${place.trim()})`;
    log(oneLine(`error: something failed outside of every execution: ${first || messageOf(thrown)}${where}`));
  };
  process.on('unhandledRejection', listener);
  process.on('uncaughtException', listener);
  return {
    release() {
      process.off('unhandledRejection', listener);
      process.off('uncaughtException', listener);
    },
  };
}

async function findProject(cwd: string, dir: string | undefined): Promise<string> {
  const folder = resolve(cwd, dir ?? '.');
  const found = await stat(folder).catch(() => undefined);
  if (!found?.isDirectory()) throw new CliError(`there is no folder ${start.showPath(cwd, folder)}`);
  return requireProject(cwd, dir);
}

/** Serves the project as its files are now. If they have a problem, the service stays as it is. */
async function reloadProject(
  live: LiveProject,
  open: () => Promise<start.ProjectOptions | undefined>,
  { say, colors }: Output,
): Promise<void> {
  try {
    const found = await open();
    if (!found) return;
    await live.replace(found);
    const { length } = await allEnsembles(live.orchestrator);
    say(`${stamp(`loaded the changed project: ${count(length, 'ensemble')}`)}\n`);
  } catch (error) {
    say(`${colors.red('error:')} ${messageOf(error)}; ${UNCHANGED}\n`);
  }
}

/**
 * @param query - see `openToRun`
 * @returns undefined when the project has problems, which this function prints
 */
async function openProject(
  directory: string,
  options: ServeOptions,
  { say, colors }: Output,
  { cwd, process }: ServiceHost,
  query?: string,
): Promise<start.ProjectOptions | undefined> {
  const env = readEnv(options.env, process.env);
  const { options: found, files } = await start.openToRun(directory, { env }, query);
  const issues = start.shownFrom(cwd, directory, files).flatMap((file) => file.issues);
  if (issues.length === 0) return { logger: streamLogger((text) => void process.stderr.write(text)), ...found };
  for (const issue of issues) say(`${printIssue(issue, colors)}\n\n`);
  const outcome = query === undefined ? 'nothing is served' : UNCHANGED;
  say(`${colors.red('✗')} ${count(issues.length, 'problem')}; ${outcome}\n`);
  return undefined;
}

/** Resumes the unfinished executions of the store. @throws CliError when the store belongs to another process */
async function ready(orchestrator: start.Orchestrator, store: string): Promise<void> {
  try {
    await orchestrator.ready();
  } catch (error) {
    if (!isOrchestratorError(error, 'CONFLICT')) throw error;
    throw new CliError(
      `another process uses the store (${store}), which takes only one process; stop that process first, or name another store with --storage`,
    );
  }
}

interface Preset {
  readonly value: string;
  readonly hash: string;
}

/** The token that the environment holds, for a development server that keeps its token. @throws CliError for text that is not the value of a token */
function readPreset(value: string | undefined, brand: string | undefined): Preset | undefined {
  if (value === undefined || value === '') return undefined;
  const hash = start.hashOfToken(value, brand);
  if (hash !== undefined) return { value, hash };
  throw wrongUsage(
    `${TOKEN_VARIABLE} is set, but does not hold the value of a token of this project (sk-${brand ?? 'service'}-...); make one with: export ${TOKEN_VARIABLE}=$(ensemble token new), or unset it`,
  );
}

/** Imports the token, unless the store knows it: then it keeps its scopes. @returns its scopes, for the user */
async function acceptPreset({ tokens }: start.Orchestrator, { value, hash }: Preset): Promise<string> {
  try {
    const { scopes } = await tokens.verify(value);
    return scopes.join(', ');
  } catch (error) {
    if (isOrchestratorError(error, 'TOKEN_EXPIRED'))
      throw new CliError(`the token in ${TOKEN_VARIABLE} has expired; make another one, or unset the variable`);
    if (!isOrchestratorError(error, 'UNAUTHORIZED')) throw error;
  }
  const { scopes } = await tokens.import({ hash, ...ADMIN });
  return scopes.join(', ');
}

interface Shown {
  /** The name of the store. */
  readonly store: string;
  /** What is known of the token in the environment. */
  readonly token: string | undefined;
  readonly dashboard: boolean;
  readonly servesSchedules: boolean;
}

/** The text that is printed at the start: the address, the store, and how to call the service. */
async function describeService(
  orchestrator: start.Orchestrator,
  { url }: HttpServer,
  { store, token, dashboard, servesSchedules }: Shown,
): Promise<string> {
  const ensembles = await allEnsembles(orchestrator);
  const names = ensembles.slice(0, SHOWN_NAMES).map(({ name }) => name);
  if (ensembles.length > SHOWN_NAMES) names.push('...');
  const lines = [`listening on ${url}`, `  ensembles  ${names.join(', ')}`];
  const due = scheduleLines(
    ensembles.map(({ definition }) => definition),
    Date.now(),
  );
  const isOff = due.length > 0 && !servesSchedules;
  const schedules = isOff ? ['none are served: the config says `schedules: false`'] : due;
  lines.push(...schedules.map((line, i) => `  ${(i === 0 ? 'schedules' : '').padEnd(9)}  ${line}`));
  lines.push(`  store      ${store}`);
  if (dashboard) lines.push(`  dashboard  ${url}/dashboard/`);
  const [first] = ensembles;
  const line = first && curlLine(url, first.definition);
  if (token) {
    lines.push(`  tokens     the one in ${TOKEN_VARIABLE}, with the scopes ${token}`);
    if (line) lines.push('', 'Try it:', '', `  ${line}`);
    return `${lines.join('\n')}\n\n`;
  }
  const made = await orchestrator.tokens.createFirst(ADMIN);
  if (!made) {
    const { length } = await orchestrator.tokens.list();
    lines.push(`  tokens     ${length}; create another with: ensemble token create --name NAME --scope SCOPE`);
    return `${lines.join('\n')}\n`;
  }
  const shown = 'The store had no tokens. This is its first token, with every scope. It is shown only once:';
  lines.push('', shown, '', `  ${made.token}`);
  if (line) lines.push('', `Try it, with the token in the variable ${TOKEN_VARIABLE}:`, '', `  ${line}`);
  return `${lines.join('\n')}\n\n`;
}

/** A line for each schedule: ensemble, pattern, time zone, and the next instant in UTC. @param now - Unix ms */
function scheduleLines(definitions: readonly EnsembleDefinition[], now: number): string[] {
  const rows = definitions.flatMap(({ name, trigger = [] }) =>
    trigger.flatMap((entry) => {
      if (entry.type !== 'schedule') return [];
      const { timezone = 'UTC' } = entry;
      const cron = entry.cron.trim().replace(/\s+/g, ' ');
      return [[name, cron, timezone, describeNext(createTicks(cron, timezone).next(now), now)]];
    }),
  );
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
}

function describeNext(next: number | undefined, now: number): string {
  if (next === undefined) return 'never due again';
  return `next at ${new Date(next).toISOString().replace('.000Z', 'Z')}, ${formatDistance(next, now)}`;
}

async function allEnsembles({ ensembles }: start.Orchestrator) {
  return (await readPages('ensembles', (page) => ensembles.list(page))).items;
}

function stamp(line: string): string {
  return `${new Date().toTimeString().slice(0, 8)} ${line}`;
}

function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw wrongUsage(`--port must be a whole number from 0 (any free port) to 65535, not ${JSON.stringify(text)}`);
}
