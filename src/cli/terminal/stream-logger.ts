/** The logger of the command line: each message on stderr, with the stack of its error, without those of level `debug`. */

import { describeError } from '../progress/show-error.ts';
import type { Logger } from '../start.ts';
import { oneLine } from './text.ts';

/**
 * @param write - receives whole lines
 * @param bound - fields of every line
 */
export function streamLogger(write: (text: string) => void, bound: object = {}): Logger {
  const line = (level: string) => (fields: object | string, message?: string) => {
    const [text, all] = typeof fields === 'string' ? [fields, bound] : [message, { ...bound, ...fields }];
    const first = `${level.padEnd(5)} ${oneLine([text, printFields(all)].filter((part) => part).join(' '))}`;
    write([first, ...stackOf(all).map((frame) => `        ${frame}`), ''].join('\n'));
  };
  const child = (fields: object) => streamLogger(write, { ...bound, ...fields });
  return { debug() {}, info: line('info'), warn: line('warn'), error: line('error'), child };
}

function printFields(fields: object): string {
  try {
    const json = JSON.stringify(fields, (_key, value) => (value instanceof Error ? value.message : value)) ?? '';
    return json === '{}' ? '' : json;
  } catch {
    return '';
  }
}

function stackOf(fields: object): string[] {
  const { err } = fields as { readonly err?: unknown };
  return err instanceof Error ? describeError({ stack: err.stack, cause: err.cause }) : [];
}
