/** `ensemble serve`: a project as a service over HTTP, until it is told to stop. */

import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isOrchestratorError } from '../engine/errors.ts';
import { CliError, wrongUsage } from './cli-error.ts';
import { closeBehind } from './close-behind.ts';
import { curlLine, TOKEN_VARIABLE } from './curl-line.ts';
import { requireProject } from './find-target.ts';
import { type HttpServer, startHttpServer } from './http-server.ts';
import { onInterrupt } from './interrupt.ts';
import { nameOfStore, openStore, ownStore, readStorage } from './open-store.ts';
import type { Output } from './output.ts';
import { printIssue } from './print-issues.ts';
import { readEnv } from './read-input.ts';
import { scheduleLines } from './schedule-lines.ts';
import type { ServiceHost } from './service.ts';
import * as start from './start.ts';
import { streamLogger } from './stream-logger.ts';
import { count, oneLine } from './text.ts';

export interface ServeOptions {
  readonly dir?: string;
  readonly port: string;
  readonly host: string;
  readonly storage?: string;
  readonly env: readonly string[];
}

/** What runs at work get to end by themselves. */
const GRACE_MS = 25_000;
/** Names of ensembles that are printed at the start. */
const SHOWN_NAMES = 5;
/** What answers get behind that: those that are on their way, and streams of events, for their last one. */
const LAST_ANSWERS = { openMs: 1_000, graceMs: 4_000 };

/** @returns the exit code: 0 after a graceful stop, 1 when the project has problems */
export async function serve(
  dir: string | undefined,
  options: ServeOptions,
  output: Output,
  { cwd, process }: ServiceHost,
): Promise<number> {
  const port = readPort(options.port);
  if (dir !== undefined && options.dir !== undefined) throw wrongUsage('the project is given twice; leave out --dir');
  const directory = await findProject(cwd, dir ?? options.dir);
  const choice = options.storage === undefined ? undefined : readStorage(options.storage, cwd);
  const capture = output.capture();
  const write = (line: string) => void process.stderr.write(`${line}\n`);
  const found = await openProject(directory, options, output, { cwd, process });
  if (!found) return 1;
  const used = choice ?? (found.storage ? undefined : ownStore(directory));
  const storage = used ? await openStore(used) : found.storage;
  const store = used ? nameOfStore(used, cwd) : 'as the config says';
  let server: HttpServer | undefined;
  // Answers come before the storage closes: a stream of events reads its last one from it.
  const engine = closeBehind(found.engine ?? start.embeddedEngine(), async () => server?.drain(LAST_ANSWERS));
  const orchestrator = start.startOrchestrator({ ...found, storage, engine });

  let heard: () => void = () => {};
  const asked = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const interrupt = onInterrupt(process, (again) => {
    if (again) return;
    write('stopping: runs at work get 25 s to end; press Ctrl-C again to stop at once');
    heard();
  });
  try {
    await ready(orchestrator, store);
    const listener = start.nodeListener(orchestrator, found.logger);
    server = await startHttpServer({ host: options.host, port, listener, log: (line) => write(stamp(line)) });
    output.print(await describe(orchestrator, server, store, found.schedules ?? true));
    await asked;
    server.stop();
    await orchestrator.close({ grace: GRACE_MS });
    write('stopped');
    return 0;
  } catch (error) {
    await orchestrator.close({ grace: 0 });
    throw error;
  } finally {
    interrupt.release();
    capture.release();
  }
}

async function findProject(cwd: string, dir: string | undefined): Promise<string> {
  const folder = resolve(cwd, dir ?? '.');
  const found = await stat(folder).catch(() => undefined);
  if (!found?.isDirectory()) throw new CliError(`there is no folder ${start.showPath(cwd, folder)}`);
  return requireProject(cwd, dir);
}

/** @returns undefined when the project has problems, which are printed then */
async function openProject(
  directory: string,
  options: ServeOptions,
  { say, colors }: Output,
  { cwd, process }: ServiceHost,
): Promise<start.ProjectOptions | undefined> {
  const env = readEnv(options.env, process.env);
  const { project, options: found, files } = await start.openToRun(directory, { env });
  for (const warning of project.warnings) say(`${colors.yellow('warning:')} ${oneLine(warning)}\n`);
  const issues = start.shownFrom(cwd, directory, files).flatMap((file) => file.issues);
  if (issues.length === 0) return { logger: streamLogger((text) => void process.stderr.write(text)), ...found };
  for (const issue of issues) say(`${printIssue(issue, colors)}\n\n`);
  say(`${colors.red('✗')} ${count(issues.length, 'problem')}; nothing is served\n`);
  return undefined;
}

/** Takes up what was left behind in the store. */
async function ready(orchestrator: start.Orchestrator, store: string): Promise<void> {
  try {
    await orchestrator.ready();
  } catch (error) {
    if (!isOrchestratorError(error, 'CONFLICT')) throw error;
    throw new CliError(
      `another process works on the store (${store}), which takes one alone; stop that one first, or name another store with --storage`,
    );
  }
}

/** What a user is told once: where it is, and how to call it. */
async function describe(
  orchestrator: start.Orchestrator,
  { url }: HttpServer,
  store: string,
  servesSchedules: boolean,
): Promise<string> {
  const ensembles = await allEnsembles(orchestrator);
  const names = ensembles.slice(0, SHOWN_NAMES).map(({ name }) => name);
  if (ensembles.length > SHOWN_NAMES) names.push('...');
  const lines = [`listening on ${url}`, `  ensembles  ${names.join(', ')}`];
  const due = scheduleLines(
    ensembles.map(({ definition }) => definition),
    Date.now(),
  );
  const isSilent = due.length > 0 && !servesSchedules;
  const schedules = isSilent ? ['none are served: the config says `schedules: false`'] : due;
  lines.push(...schedules.map((line, i) => `  ${(i === 0 ? 'schedules' : '').padEnd(9)}  ${line}`));
  lines.push(`  store      ${store}`);
  const [first] = ensembles;
  const made = await orchestrator.tokens.createFirst({ name: 'admin', scopes: ['admin'], plan: 'enterprise' });
  if (!made) {
    const { length } = await orchestrator.tokens.list();
    lines.push(`  tokens     ${length}; make another with: ensemble token create --name NAME --scope SCOPE`);
    return `${lines.join('\n')}\n`;
  }
  const shown = 'The store has no tokens yet. A first one, for everything, shown this once only:';
  lines.push('', shown, '', `  ${made.token}`);
  const line = first && curlLine(url, first.definition);
  if (line) lines.push('', `Try it, with the token in the variable ${TOKEN_VARIABLE}:`, '', `  ${line}`);
  return `${lines.join('\n')}\n\n`;
}

async function allEnsembles({ ensembles }: start.Orchestrator) {
  const all: Awaited<ReturnType<typeof ensembles.list>>['ensembles'][number][] = [];
  let cursor: string | undefined;
  do {
    const page = await ensembles.list({ limit: 250, ...(cursor !== undefined && { cursor }) });
    all.push(...page.ensembles);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}

function stamp(line: string): string {
  return `${new Date().toTimeString().slice(0, 8)} ${line}`;
}

function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw wrongUsage(`--port must be a whole number from 0 (any that is free) to 65535, not ${JSON.stringify(text)}`);
}
