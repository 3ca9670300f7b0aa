/** The logger port. pino and console both implement it. */

export interface Logger {
  debug(fields: object, message?: string): void;
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
  /** Returns a logger that adds fields to each line, as that of pino does. Without it, the library adds the fields itself. */
  child?(fields: object): Logger;
}

/** A method of a logger that writes nothing. Where a logger has it, nothing is built for a line. */
export const NO_LINE = (): void => {};

/** The logger of an orchestrator with `logger: false`. */
export const SILENT: Logger = Object.freeze({ debug: NO_LINE, info: NO_LINE, warn: NO_LINE, error: NO_LINE });

/** The logger that an option `logger` means. @param otherwise - without the option */
export function loggerOf(given: Logger | false | undefined, otherwise: Logger): Logger {
  return given === false ? SILENT : (given ?? otherwise);
}
