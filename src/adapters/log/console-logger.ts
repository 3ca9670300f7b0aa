/** The logger of an orchestrator without a logger: warnings and errors on `console`, each on one line. */

import { messageOf } from '../../engine/base/errors.ts';
import { type Logger, NO_LINE, SILENT } from '../../engine/ports/logger.ts';

/** @param bound - fields of every line */
export function consoleLogger(bound: object = {}): Logger {
  const line = (level: 'warn' | 'error') => (fields: object | string, message?: string) => {
    const [text = '', all] = typeof fields === 'string' ? [fields, bound] : [message, { ...bound, ...fields }];
    const rest = toText(all);
    console[level](`ensemble-orchestrator: ${escapeControls(text)}${rest === '{}' ? '' : ` ${rest}`}`);
  };
  const child = (fields: object) => consoleLogger({ ...bound, ...fields });
  return { debug: NO_LINE, info: NO_LINE, warn: line('warn'), error: line('error'), child };
}

/** The logger that an option `logger` means. */
export function loggerOf(given: Logger | false | undefined): Logger {
  return given === false ? SILENT : (given ?? consoleLogger());
}

function toText(fields: object): string {
  return escapeControls(JSON.stringify(fields, (_key, value) => (value instanceof Error ? reasonsOf(value) : value)));
}

/** The message of an error and those of its causes. */
function reasonsOf(error: Error): string {
  const reasons: string[] = [];
  for (let one: unknown = error, i = 0; one !== undefined && i < MAX_CAUSES; one = (one as Error).cause, i++) {
    const reason = messageOf(one);
    // The message of an error often ends with that of its cause.
    if (!reasons.at(-1)?.includes(reason)) reasons.push(reason);
    if (!(one instanceof Error)) break;
  }
  return reasons.join(': ');
}

const MAX_CAUSES = 5;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are escaped
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Text of others must neither begin a line nor control a terminal. */
function escapeControls(text: string): string {
  return text.replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
