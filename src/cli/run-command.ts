/** `ensemble run`: runs one ensemble, shows how it goes, and prints its output. */

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf } from '../engine/errors.ts';
import type { Execution } from '../engine/model/execution.ts';
import { CliError, wrongUsage } from './cli-error.ts';
import { findTargets, isPath, requireProject } from './find-target.ts';
import { onInterrupt } from './interrupt.ts';
import { createLiveProgress, type Progress, SHOW_CURSOR } from './live-progress.ts';
import { longestAgentName } from './longest-agent-name.ts';
import type { Output } from './output.ts';
import { createPlainProgress } from './plain-progress.ts';
import { printIssue } from './print-issues.ts';
import { readInput } from './read-input.ts';
import * as start from './start.ts';
import { streamLogger } from './stream-logger.ts';
import { count, formatDuration, oneLine, printJson } from './text.ts';

export interface RunOptions {
  readonly dir?: string;
  readonly env: readonly string[];
  readonly input?: string;
  readonly json?: boolean;
}

export interface RunHost {
  readonly cwd: string;
  readonly process: NodeJS.Process;
}

const TICK_MS = 80;

/** @returns the exit code: 0, 1 when the run failed, 128 and the signal's number when it was interrupted */
export async function run(target: string, options: RunOptions, output: Output, host: RunHost): Promise<number> {
  const capture = output.capture();
  const logger = streamLogger((text) => void host.process.stderr.write(text));
  const input = await readInput(options.input, host.cwd, host.process.stdin);
  const found = await open(
    target,
    { env: readEnv(options.env, host.process.env), logger },
    options.dir,
    output,
    host.cwd,
  );
  if (!found) return 1;
  const { name } = found;
  const orchestrator = start.startOrchestrator(found.options);
  const clock = () => ({ monotonic: performance.now(), wall: Date.now() });
  const create = output.live ? createLiveProgress : createPlainProgress;
  const nameWidth = Math.min(32, longestAgentName((await orchestrator.ensembles.get(name)).definition));
  const progress = options.json
    ? undefined
    : create({ stream: output.stream, colors: output.colors, now: clock, nameWidth });
  capture.watch(progress?.foreign);

  const showing = progress && show(orchestrator, progress);
  const handle = await orchestrator.start(name, input);
  const interrupt = onInterrupt(host.process, (again) => {
    if (again && output.live) output.say(SHOW_CURSOR);
    if (!again) host.process.stderr.write('cancelling; press Ctrl-C again to stop at once\n');
    if (!again) handle.cancel();
  });
  const record = await handle.result();
  showing?.end();
  interrupt.release();
  capture.release();
  await orchestrator.close({ grace: 0 });
  if (options.json) output.print(`${printJson(record)}\n`);
  else report(record, output);
  if (interrupt.exitCode !== undefined && record.status === 'cancelled') return interrupt.exitCode;
  return record.status === 'completed' ? 0 : 1;
}

function findEnsemble(orchestrator: start.Orchestrator, name: string) {
  try {
    return orchestrator.ensembles.get(name);
  } catch (error) {
    const names = orchestrator.ensembles.list().map((item) => item.name);
    const shown = names.slice(0, 10).join(', ') + (names.length > 10 ? `, and ${names.length - 10} more` : '');
    throw new CliError(`${messageOf(error)}\nThis project has: ${shown}`);
  }
}

const SHOWN_EVENTS = ['agent.started', 'agent.retrying', 'agent.completed', 'agent.failed', 'agent.skipped'] as const;

function show(orchestrator: start.Orchestrator, progress: Progress): { end(): void } {
  for (const kind of SHOWN_EVENTS) orchestrator.on(kind, (event) => progress.update(event));
  const timer = setInterval(() => progress.tick(), TICK_MS);
  return {
    end() {
      clearInterval(timer);
      progress.finish();
    },
  };
}

interface Found {
  readonly name: string;
  readonly options: start.ProjectOptions;
}

// Undefined when there are problems, which are printed then.
async function open(
  target: string,
  given: { readonly env: Readonly<Record<string, string>>; readonly logger: start.Logger },
  dir: string | undefined,
  output: Output,
  cwd: string,
): Promise<Found | undefined> {
  const refuse = (issues: readonly start.DefinitionIssue[]) => {
    for (const issue of issues) output.say(`${printIssue(issue, output.colors)}\n\n`);
    output.say(`${output.colors.red('✗')} ${count(issues.length, 'problem')}; nothing was run\n`);
    return undefined;
  };
  const openProject = async (directory: string) => {
    const { project, options, files } = await start.openToRun(directory, { env: given.env });
    const shown = start.shownFrom(cwd, directory, files);
    for (const warning of project.warnings) output.say(`${output.colors.yellow('warning:')} ${warning}\n`);
    return { options: { logger: given.logger, ...options }, issues: shown.flatMap(({ issues }) => issues) };
  };
  if (!isPath(target)) {
    const { options, issues } = await openProject(await requireProject(cwd, dir));
    return issues.length > 0 ? refuse(issues) : { name: target, options };
  }
  const [file, more] = await findTargets(cwd, target);
  if (!file || more || file.kind === 'project')
    throw wrongUsage(`${target} is a folder; run one file of it, or --dir ${target} and a name`);
  const path = file.kind === 'file' ? file.path : resolve(file.directory, file.file);
  const text = await readFile(path, 'utf8');
  const shown = start.showPath(cwd, path);
  const directory =
    dir !== undefined ? await requireProject(cwd, dir) : file.kind === 'member' ? file.directory : undefined;
  if (file.kind === 'member' && file.file.startsWith('agents/'))
    throw new CliError(`${shown} is an agent; run an ensemble that names it`);
  if (directory === undefined) {
    const options = start.optionsAlone(text, given);
    const issues = start.checkInProject(text, shown, options);
    return issues.length > 0 ? refuse(issues) : { name: start.parseEnsemble(text).name, options };
  }
  const { options, issues } = await openProject(directory);
  if (issues.length > 0) return refuse(issues);
  const own = start.checkInProject(text, shown, options);
  if (own.length > 0) return refuse(own);
  const { name } = start.parseEnsemble(text);
  const others = file.kind === 'member' && directory === file.directory ? options.ensembles : [text];
  return { name, options: { ...options, ensembles: others } };
}

function readEnv(
  names: readonly string[],
  processEnv: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of names) {
    if (name.includes('=')) {
      const [before] = name.split('=');
      throw wrongUsage(
        `--env takes the name of a variable, not its value: set ${before} in the shell and write --env ${before}`,
      );
    }
    const value = processEnv[name];
    if (value === undefined) throw new CliError(`--env names ${name}, which is not set`);
    env[name] = value;
  }
  return env;
}

function report(record: Execution<unknown>, { colors, print, say }: Output): void {
  const { status, error, ensemble, metrics, duration = 0 } = record;
  const facts = `${formatDuration(duration)}, ${count(metrics.agents, 'agent')}`;
  if (status === 'completed') say(`${colors.green('✓')} ${ensemble} completed in ${facts}\n`);
  else {
    const where = error?.agent === undefined ? '' : ` at ${error.agent}`;
    const how = status === 'timed_out' ? 'ran out of time' : status;
    const why = error && status !== 'cancelled' ? `: ${oneLine(error.message)}` : '';
    say(`${colors.red('✗')} ${ensemble} ${how}${where} after ${facts}${why}\n`);
  }
  if (status === 'completed' || !isEmpty(record.output)) print(`${printJson(record.output)}\n`);
}

function isEmpty(output: unknown): boolean {
  return output === null || (typeof output === 'object' && Object.keys(output).length === 0);
}
