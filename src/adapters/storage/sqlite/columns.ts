/** How values go into SQLite's columns: text that no driver can cut or alter. */

import { isPlainText } from '../../../engine/ports/data.ts';

/** Text as it is; what a driver would alter, and what begins with a quote, as a JSON string: no two texts become one. */
export function toTextColumn(text: string): string {
  return text.charCodeAt(0) !== QUOTE && isPlainText(text) ? text : JSON.stringify(text);
}

const QUOTE = 34;

/** Text in a statement itself, in the place of a parameter: for what is the same in every call of it. */
export function toLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
