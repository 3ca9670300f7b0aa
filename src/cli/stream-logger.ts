/** The logger of runs from the command line: one line a message on stderr. */

import type { Logger } from './start.ts';
import { oneLine } from './text.ts';

/** @param write - takes whole lines */
export function streamLogger(write: (text: string) => void): Logger {
  const line = (level: string) => (fields: object, message?: string) => {
    const given = typeof fields === 'string' ? fields : printFields(fields);
    write(`${level.padEnd(5)} ${oneLine([message, given].filter((part) => part).join(' '))}\n`);
  };
  return { debug() {}, info: line('info'), warn: line('warn'), error: line('error') };
}

function printFields(fields: object): string {
  try {
    const json = JSON.stringify(fields, (_key, value) => (value instanceof Error ? value.message : value)) ?? '';
    return json === '{}' ? '' : json;
  } catch {
    return '';
  }
}
