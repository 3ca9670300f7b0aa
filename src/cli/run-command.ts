/** `ensemble run`: runs one ensemble, shows how it goes, and prints its output. */

import { messageOf } from '../engine/errors.ts';
import type { EnsembleDefinition } from '../engine/model/ensemble.ts';
import type { Execution } from '../engine/model/execution.ts';
import { CliError } from './cli-error.ts';
import { onInterrupt } from './interrupt.ts';
import { createLiveProgress, type Progress, SHOW_CURSOR } from './live-progress.ts';
import { longestAgentName } from './longest-agent-name.ts';
import { openRun } from './open-run.ts';
import type { Output } from './output.ts';
import { createPlainProgress } from './plain-progress.ts';
import { readEnv, readInput } from './read-input.ts';
import * as start from './start.ts';
import { streamLogger } from './stream-logger.ts';
import { count, formatDuration, oneLine, printJson } from './text.ts';

export interface RunOptions {
  readonly dir?: string;
  readonly env: readonly string[];
  readonly input?: string;
  readonly json?: boolean;
  readonly watch?: boolean;
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
  const given = { env: readEnv(options.env, host.process.env), logger };
  const found = await openRun(target, given, options.dir, output, host.cwd);
  if (!found) return 1;
  const { name } = found;
  const orchestrator = start.startAlone(found.options);
  const clock = () => ({ monotonic: performance.now(), wall: Date.now() });
  const create = output.live ? createLiveProgress : createPlainProgress;
  const definition = await definitionOf(orchestrator, name);
  const nameWidth = Math.min(32, longestAgentName(definition));
  const isShown = options.watch === true || !options.json;
  const { stream, colors } = output;
  const progress = isShown ? create({ stream, colors, now: clock, nameWidth, definition }) : undefined;
  capture.watch(progress?.foreign);

  const showing = progress && show(orchestrator, progress);
  const cancelling = new AbortController();
  const interrupt = onInterrupt(host.process, (again) => {
    if (again) return output.live ? void output.stream.write(SHOW_CURSOR) : undefined;
    host.process.stderr.write('cancelling; press Ctrl-C again to stop at once\n');
    cancelling.abort();
  });
  let record: Execution<unknown>;
  try {
    record = await orchestrator.execute(name, input, { signal: cancelling.signal });
  } finally {
    showing?.end();
    interrupt.release();
    capture.release();
  }
  await orchestrator.close({ grace: 0 });
  if (options.json) output.print(`${printJson(record)}\n`);
  else report(record, output);
  if (interrupt.exitCode !== undefined && record.status === 'cancelled') return interrupt.exitCode;
  return record.status === 'completed' ? 0 : 1;
}

// The definition, or the names that there are.
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
  ...(['foreach.started', 'step.waiting', 'child.started', 'child.ended'] as const),
];

function show(orchestrator: start.Orchestrator, progress: Progress): { end(): void } {
  // The first one that begins: those that it starts by steps of its own tell of steps of other flows.
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
