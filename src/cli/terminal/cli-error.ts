/** The failures of which the command line prints only the message, and their exit codes. */

/** A failure that the user can correct. Exit code 1, or 2 for wrong usage. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
  }
}

/** @param message - what is wrong with the command, and how to write it */
export function wrongUsage(message: string): CliError {
  return new CliError(message, 2);
}
