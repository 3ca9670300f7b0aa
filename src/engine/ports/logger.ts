/** The logger port. pino and console both implement it. */

export interface Logger {
  debug(fields: object, message?: string): void;
  info(fields: object, message?: string): void;
  warn(fields: object, message?: string): void;
  error(fields: object, message?: string): void;
  /** Returns a logger that adds fields to each line, as that of pino does. Without it, the library adds the fields itself. */
  child?(fields: object): Logger;
}

/** The logger of an orchestrator without a logger. Where it is used, nothing is built for a line. */
export const SILENT: Logger = Object.freeze({ debug() {}, info() {}, warn() {}, error() {} });
