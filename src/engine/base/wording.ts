/** Formats values and names for the messages about definitions. */

const MAX_SHOWN = 40;
const MAX_NAME = 80;

/** How a message shows a value: text and numbers cut to 40 characters, other values by their kind. */
export function describeValue(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'a map of keys';
  const text = typeof value === 'string' ? `'${value}'` : String(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 3)}...` : text;
}

/** A name or key in backticks, cut to 80 characters. */
export function quoted(name: string): string {
  return `\`${name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1)}…` : name}\``;
}

// Control characters can control a terminal, and the names, keys and lines of a definition may contain them.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must go
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

/** One line of text without characters that control a terminal. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '\ufffd');
}

/** A list of names in backticks, such as: `a`, `b` or `c` */
export function oneOf(values: readonly string[], word: 'or' | 'and' = 'or'): string {
  const names = values.map(quoted);
  return names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} ${word} ${names.at(-1)}`;
}

const MAX_LISTED = 10;

/** Such as `v2, v1`; of many, the first 10 and how many there are. */
export function listOfNames(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  return names.length > MAX_LISTED
    ? `${names.slice(0, MAX_LISTED).join(', ')}, ... (${names.length})`
    : names.join(', ');
}
