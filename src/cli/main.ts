#!/usr/bin/env node
/** The command `ensemble`: runs a subcommand, and turns failures into messages and exit codes. */

import { CommanderError } from 'commander';
import { isOrchestratorError, type OrchestratorError } from '../engine/base/errors.ts';
import { createProgram } from './program.ts';
import { CliError } from './terminal/cli-error.ts';
import { createOutput, type Output } from './terminal/output.ts';
import { oneLine } from './terminal/text.ts';

const output = createOutput(process);
output.capture();
// A reader that closes the pipe early (`ensemble schema | head`) is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
const exitCode = await main(output);
await output.flush();
// Connections that scripts left open would keep the process alive.
process.exit(exitCode);

async function main({ colors, say }: Output): Promise<number> {
  let code = 0;
  const program = createProgram(output, { cwd: process.cwd(), process }, (ended) => {
    code = ended;
  });
  try {
    await program.parseAsync(process.argv);
    return code;
  } catch (error) {
    // Commander has printed the message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof CliError) {
      say(`${colors.red('error:')} ${error.message}\n`);
      return error.exitCode;
    }
    if (isOrchestratorError(error)) {
      say(`${colors.red('error:')} ${error.message}${whyUnreachable(error)}\n`);
      return 1;
    }
    say(`${colors.red('error:')} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return 1;
  }
}

/** Why a store does not respond, such as a port without a listener; empty for other errors. */
function whyUnreachable({ code, cause }: OrchestratorError): string {
  if (code !== 'OVERLOADED' || !(cause instanceof Error)) return '';
  const reason = cause.message || (cause as NodeJS.ErrnoException).code;
  return reason ? ` (${oneLine(reason)})` : '';
}
