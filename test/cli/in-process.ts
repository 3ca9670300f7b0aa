/** Runs a command in the process of the test, and returns what it prints. */

import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { CommanderError } from 'commander';
import { createProgram } from '../../src/cli/program.ts';
import { CliError } from '../../src/cli/terminal/cli-error.ts';
import { createOutput } from '../../src/cli/terminal/output.ts';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import { type CliOptions, type Ran, ROOT } from './cli-process.ts';

/** A person at a terminal. */
export interface Person {
  /** Called with what is on stderr since the last answer, each time that it grows. Text is typed, `null` ends the input. */
  types(shown: string): string | null | undefined;
}

/** Like `ensemble` of `cli-process.ts`: for tests in which the process is not what is tested. */
export function ensemble(args: readonly string[], { cwd = ROOT, ...given }: CliOptions = {}): Promise<Ran> {
  return ensembleHere(args, cwd, undefined, given);
}

/**
 * @param cwd - the folder in which the command runs
 * @param person - without one, stdin and stderr are no terminal
 */
export async function ensembleHere(
  args: readonly string[],
  cwd: string,
  person?: Person,
  { stdin: text = '', env = {} }: Omit<CliOptions, 'cwd'> = {},
): Promise<Ran> {
  const written = { stdout: '', stderr: '' };
  const stdin = Object.assign(new PassThrough(), { isTTY: person !== undefined });
  if (!person) stdin.end(text);
  let answered = 0;
  const stream = (name: keyof typeof written) => ({
    isTTY: name === 'stderr' && person !== undefined,
    write(text: string) {
      written[name] += text;
      const typed = name === 'stderr' ? person?.types(written.stderr.slice(answered)) : undefined;
      if (typed !== undefined) answered = written.stderr.length;
      if (typed === null) stdin.end();
      else if (typed !== undefined) stdin.write(typed);
      return true;
    },
  });
  const signals = new EventEmitter();
  const host = {
    stdin,
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    env: person ? { TERM: 'dumb' } : env,
    on: signals.on.bind(signals),
    off: signals.off.bind(signals),
  };
  const output = createOutput(host);
  let code = 0;
  const process = host as unknown as NodeJS.Process;
  const program = createProgram(output, { cwd, process }, (ended) => {
    code = ended;
  });
  try {
    await program.parseAsync(['node', 'ensemble', ...args]);
  } catch (error) {
    if (error instanceof CommanderError) code = error.exitCode === 0 ? 0 : 2;
    else if (error instanceof CliError || isOrchestratorError(error)) {
      code = error instanceof CliError ? error.exitCode : 1;
      written.stderr += `error: ${error.message}\n`;
    } else throw error;
  }
  return { code, ...written };
}
