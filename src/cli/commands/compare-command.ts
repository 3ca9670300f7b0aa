/** `ensemble component compare`: asks the models of a project with two versions of a prompt, for each of many inputs. */

import type { ResolvedComponent } from '../../engine/component/component.ts';
import type { Execution } from '../../engine/execution/execution.ts';
import { requireProject } from '../project/find-target.ts';
import { readEnv, readText } from '../project/read-input.ts';
import { withService } from '../service/open-service.ts';
import type { ServiceHost } from '../service/service.ts';
import * as start from '../start.ts';
import { CliError, wrongUsage } from '../terminal/cli-error.ts';
import type { Output } from '../terminal/output.ts';
import { streamLogger } from '../terminal/stream-logger.ts';
import { formatTable, terminalWidth } from '../terminal/table.ts';
import { count, formatDuration, printJson } from '../terminal/text.ts';
import type { ComponentOptions } from './component-command.ts';

export interface CompareOptions extends ComponentOptions {
  readonly inputs: string;
  readonly provider?: string;
  readonly model?: string;
  readonly env: readonly string[];
}

/** The answer to one input. */
interface Answer {
  readonly output?: string;
  readonly error?: string;
  readonly duration: number;
  readonly tokens: number;
}

/** @returns the exit code: 1 if a run failed */
export async function compareComponent(
  [name, a, b]: readonly [name: string, a: string, b: string],
  options: CompareOptions,
  output: Output,
  host: ServiceHost,
): Promise<number> {
  const inputs = readCases(await readText(options.inputs, host.cwd, host.process.stdin, '--inputs'), options.inputs);
  const versions = await withService(
    options,
    host,
    ({ components }) => Promise.all([components.version(name, a), components.version(name, b)]),
    { components: 'use' },
  );
  if (versions[0].version === versions[1].version)
    throw wrongUsage(`${a} and ${b} are both ${versions[0].version} of ${name}: name two versions`);
  if (versions[0].kind !== 'prompt')
    throw wrongUsage(`${name} is a ${versions[0].kind}, and only prompts have answers`);
  const answers = await answerAll(versions, inputs, options, host);
  const isFailed = answers.some((pair) => pair.some(({ error }) => error !== undefined));
  if (options.json) {
    const cases = inputs.map((input, i) => ({
      input,
      ...Object.fromEntries(versions.map(({ version }, side) => [version, answers[i]?.[side]])),
    }));
    output.print(`${printJson({ cases })}\n`);
    return isFailed ? 1 : 0;
  }
  const columns = [
    { title: 'INPUT', shrinkTo: 16 },
    ...versions.map(({ version: title }) => ({ title, shrinkTo: 16 })),
  ];
  const rows = inputs.map((input, i) => [JSON.stringify(input), ...(answers[i] ?? []).map(shownAnswer)]);
  output.print(formatTable(columns, rows, terminalWidth(host.process)));
  for (const [side, { version }] of versions.entries()) {
    const all = answers.map((pair) => pair[side] as Answer);
    const sum = (of: (answer: Answer) => number) => all.reduce((total, answer) => total + of(answer), 0);
    const failed = all.filter(({ error }) => error !== undefined).length;
    const parts = [
      `${count(failed, 'failure')} of ${all.length}`,
      `${count(
        sum(({ tokens }) => tokens),
        'token',
      )}`,
      `${formatDuration(sum(({ duration }) => duration) / all.length)} on average`,
    ];
    output.say(`${version}: ${parts.join(', ')}\n`);
  }
  return isFailed ? 1 : 0;
}

function shownAnswer({ output = '', error }: Answer): string {
  return error === undefined ? output : `failed: ${error}`;
}

/** One input for each line of JSON. */
function readCases(text: string, file: string): readonly unknown[] {
  const cases = text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    try {
      return [JSON.parse(line) as unknown];
    } catch (error) {
      throw new CliError(`line ${i + 1} of ${file} is not JSON: ${(error as Error).message}`);
    }
  });
  if (cases.length === 0) throw new CliError(`${file} has no inputs: expected one in JSON on each line`);
  return cases;
}

/** The answers in the order of the inputs, each with those of both versions. */
async function answerAll(
  versions: readonly [ResolvedComponent, ResolvedComponent],
  inputs: readonly unknown[],
  options: CompareOptions,
  { cwd, process }: ServiceHost,
): Promise<readonly (readonly Answer[])[]> {
  const directory = await requireProject(cwd, options.dir);
  const opened = await start.openToRun(directory, { env: readEnv(options.env, process.env) });
  const [{ name }] = versions;
  const { provider, model } = options;
  const ask = {
    name: 'compare',
    flow: [
      {
        ...{ agent: 'answer', operation: 'think', input: '${input.case}' },
        config: {
          prompt: `prompt://${name}@\${input.version}`,
          ...(provider && { provider }),
          ...(model && { model }),
        },
      },
    ],
    outputs: { text: '${answer.output.text}' },
  };
  const { components: _source, storage: _storage, ...given } = opened.options;
  const logger = failureLogger(streamLogger((text) => void process.stderr.write(text)));
  const orchestrator = start.startAlone({ ...given, ensembles: [ask], agents: [], logger });
  try {
    await orchestrator.components.register({ name, kind: 'prompt' });
    for (const { version, content, metadata } of versions) {
      await orchestrator.components.update(name, { metadata });
      await orchestrator.components.createVersion(name, { version, content });
    }
    const answers: (readonly Answer[])[] = [];
    for (const given of inputs) {
      const runs = versions.map(({ version }) => orchestrator.execute('compare', { case: given, version }));
      answers.push((await Promise.all(runs)).map(toAnswer));
    }
    return answers;
  } finally {
    await orchestrator.close();
  }
}

/** Only why an attempt failed: the rest is in the table. */
function failureLogger(logger: start.Logger): start.Logger {
  const warn = (fields: object | string, message?: string) => {
    const { err } = fields as {
      readonly err?: { readonly message?: string; readonly cause?: { readonly message?: string } };
    };
    if (message === 'attempt failed') logger.warn({}, `attempt failed: ${err?.cause?.message ?? err?.message}`);
    else if (message !== 'execution failed') logger.warn(fields as object, message);
  };
  return { ...logger, info() {}, warn, child: () => failureLogger(logger) };
}

function toAnswer({ output, error, duration = 0, metrics }: Execution<unknown>): Answer {
  const { inputTokens = 0, outputTokens = 0 } = metrics.usage ?? {};
  const text = (output as { readonly text?: unknown } | undefined)?.text;
  return {
    ...(error ? { error: error.message } : { output: typeof text === 'string' ? text : JSON.stringify(text) }),
    ...{ duration, tokens: inputTokens + outputTokens },
  };
}
