/** The failures that the command line reports by their message alone, and what they mean for the exit code. */

/** Something the user can put right; exit code 1, or 2 when the command itself was wrong. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
  }
}

/** @param message - what was wrong with the command, and how it is written */
export function wrongUsage(message: string): CliError {
  return new CliError(message, 2);
}
