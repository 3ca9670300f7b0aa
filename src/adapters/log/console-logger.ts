/** The logger of an orchestrator without a logger: warnings and errors on `console`, each on one line. */

import { messageOf } from '../../engine/base/errors.ts';
import { type Logger, NO_LINE } from '../../engine/host/logger.port.ts';

const line =
  (level: 'warn' | 'error') =>
  (fields: object, message = '') => {
    const rest = escapeControls(
      JSON.stringify(fields, (_key, value) => (value instanceof Error ? reasonsOf(value) : value)),
    );
    console[level](`ensemble-orchestrator: ${escapeControls(message)}${rest === '{}' ? '' : ` ${rest}`}`);
  };

export const CONSOLE: Logger = Object.freeze({
  debug: NO_LINE,
  info: NO_LINE,
  warn: line('warn'),
  error: line('error'),
});

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
