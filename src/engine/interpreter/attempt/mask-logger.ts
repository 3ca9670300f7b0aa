/** Loggers as the library calls them: they receive no secret, and a logger that fails does not affect a run. */

import { type Logger, NO_LINE, SILENT } from '../../host/logger.port.ts';
import { FieldCopy } from './mask-fields.ts';

type Level = 'debug' | 'info' | 'warn' | 'error';

/** A logger that masks secrets in messages and fields. It never throws, whatever `logger` does and whatever is logged. */
export function maskLogger(logger: Logger, mask: (text: string) => string): Logger {
  if (logger === SILENT) return SILENT;
  const level = (name: Level) => {
    if (logger[name] === NO_LINE) return NO_LINE;
    return (fields: object, message?: string) => {
      try {
        const masked = new FieldCopy(mask, true).of(fields) as object;
        const written: unknown = write(logger, name, masked, message === undefined ? undefined : mask(message));
        if (written instanceof Promise) written.catch(() => {});
      } catch {
        // A logger that fails can't log its own failure, and must not fail a run.
      }
    };
  };
  return {
    debug: level('debug'),
    info: level('info'),
    warn: level('warn'),
    error: level('error'),
    child: (fields) => maskLogger(childOf(logger, new FieldCopy(mask, true).of(fields) as object), mask),
  };
}

/** console prints an argument that is undefined. */
function write(logger: Logger, name: Level, fields: object, message: string | undefined): unknown {
  return message === undefined ? logger[name](fields) : logger[name](fields, message);
}

/** A logger that adds fields to each line: the logger's own child, or, if it has none, one that merges the fields. */
function childOf(logger: Logger, bound: object): Logger {
  try {
    const child = logger.child?.(bound);
    if (child) return child;
  } catch {
    // The fields are merged instead.
  }
  const level = (name: Level) => {
    if (logger[name] === NO_LINE) return NO_LINE;
    return (fields: object | string, message?: string) => {
      if (typeof fields === 'string') return write(logger, name, bound, message ? `${fields} ${message}` : fields);
      if (fields instanceof Error) return write(logger, name, { ...bound, err: fields }, message ?? fields.message);
      return write(logger, name, { ...bound, ...fields }, message);
    };
  };
  return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') };
}
