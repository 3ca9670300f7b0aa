/** Text for terminals: durations, counts, and foreign text made safe and short enough for one line. */

// A terminal interprets control characters. Text from definitions, scripts and peers must not contain them.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are removed
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;
/** The command line's own layout: colours, line ends, indents. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control sequences
const LAYOUT = /(?:\u001b\[\d{1,3}m|[\n\t])+/g;
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/;

/** Such as `12ms`, `1.2s`, `2m 05s`, `3h 07m`. @param ms - milliseconds */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  const tenths = Math.round(ms / 100);
  if (tenths < 600) return `${(tenths / 10).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${twoDigits(seconds % 60)}s`;
  const minutes = Math.round(ms / 60_000);
  return `${Math.floor(minutes / 60)}h ${twoDigits(minutes % 60)}m`;
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}

/** Such as `1 file`, `3 files`. */
export function count(amount: number, noun: string): string {
  return `${amount.toLocaleString('en-US')} ${noun}${amount === 1 ? '' : 's'}`;
}

/** Foreign text on one line, without control characters. */
export function oneLine(text: string): string {
  return text.replace(/\s*\r?\n\s*/g, ' ').replace(UNPRINTABLE, '\ufffd');
}

/** Text that is safe for a terminal: only colours and line ends remain of its control characters. */
export function forTerminal(text: string): string {
  let safe = '';
  let from = 0;
  for (const { 0: layout, index } of text.matchAll(LAYOUT)) {
    safe += text.slice(from, index).replace(UNPRINTABLE, '\ufffd') + layout;
    from = index + layout.length;
  }
  return safe + text.slice(from).replace(UNPRINTABLE, '\ufffd');
}

/** A value as indented JSON. Control characters are escaped, which JSON allows. */
export function printJson(value: unknown): string {
  const json = JSON.stringify(value, null, 2) ?? 'null';
  return json.replace(UNPRINTABLE, (char) =>
    char === '\n' ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The width of a text in columns; ideographs and emoji have two. */
export function textWidth(text: string): number {
  let width = 0;
  for (const char of text) width += WIDE.test(char) ? 2 : 1;
  return width;
}

/** A text cut or filled to a width in columns. */
export function fitText(text: string, columns: number): string {
  const cut = cutText(text, columns);
  return cut + ' '.repeat(Math.max(0, columns - textWidth(cut)));
}

/** The start of a text with at most `columns` columns. A cut text ends with `…`. */
export function cutText(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  let cut = '';
  let width = 1;
  for (const char of text) {
    width += textWidth(char);
    if (width > columns) break;
    cut += char;
  }
  return columns < 1 ? '' : `${cut}…`;
}
