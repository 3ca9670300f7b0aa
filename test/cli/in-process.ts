/** Runs a command in the process of the test: what it prints, without the start of a process. */

import { CommanderError } from 'commander';
import { CliError } from '../../src/cli/cli-error.ts';
import { createOutput } from '../../src/cli/output.ts';
import { createProgram } from '../../src/cli/program.ts';
import { isOrchestratorError } from '../../src/engine/errors.ts';
import type { Ran } from './cli-process.ts';

/** @param cwd - the folder that the command is run in */
export async function ensembleHere(args: readonly string[], cwd: string): Promise<Ran> {
  const said = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof said) => ({
    write(text: string) {
      said[name] += text;
      return true;
    },
  });
  const host = { stdout: stream('stdout'), stderr: stream('stderr'), env: {}, on() {}, off() {} };
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
      said.stderr += `error: ${error.message}\n`;
    } else throw error;
  }
  return { code, ...said };
}
