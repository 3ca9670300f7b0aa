/** Text in SQLite columns, written so that no driver can cut or alter it. */

import { isPlainText } from '../../../../engine/storage/data.port.ts';

/**
 * The text itself, or a JSON string for text that a driver would alter or that begins with a quote. Different texts
 * stay different.
 */
export function toTextColumn(text: string): string {
  return text.charCodeAt(0) !== QUOTE && isPlainText(text) ? text : JSON.stringify(text);
}

const QUOTE = 34;

/** A text literal in a statement, for a value that is the same in every call. */
export function toLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
