/** What the message of a tag has: text, and lines `key: value` as its last paragraph. */

export interface TagMessage {
  readonly text: string | undefined;
  /** Empty for a tag of the command `git`. */
  readonly fields: Readonly<Record<string, unknown>>;
}

const FIELD = /^([A-Za-z]+): (.+)$/;
const SIGNATURE = /^-----BEGIN [A-Z ]+-----$/m;
/** A line of the text that looks like the begin of a signature is marked as such signed texts mark it (RFC 9580, 7.2). */
const LIKE_SIGNATURE = /^(?:- )*-----BEGIN /gm;
const MARKED = /^- (?=(?:- )*-----BEGIN )/gm;

/** A value that is text is written as it is, if it can't be mistaken for JSON. */
export function formatMessage({ text, fields }: TagMessage): string {
  const lines = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}: ${formatValue(value)}`);
  return `${text === undefined ? '' : `${text.replace(LIKE_SIGNATURE, '- $&')}\n\n`}${lines.join('\n')}`;
}

/** @param isField - the names of the fields. A last paragraph with any other line is text */
export function parseMessage(message: string, isField: (name: string) => boolean): TagMessage {
  const signed = SIGNATURE.exec(message);
  const all = (signed ? message.slice(0, signed.index) : message).replace(/\n+$/, '');
  const start = all.lastIndexOf('\n\n');
  const fields: Record<string, unknown> = {};
  for (const line of (start < 0 ? all : all.slice(start + 2)).split('\n')) {
    const [, key, value] = FIELD.exec(line) ?? [];
    if (key === undefined || !isField(key)) return { text: all === '' ? undefined : unmarked(all), fields: {} };
    fields[key] = parseValue(value as string);
  }
  return { text: start < 0 ? undefined : unmarked(all.slice(0, start)), fields };
}

const unmarked = (text: string) => text.replace(MARKED, '');

function formatValue(value: unknown): string {
  const isPlain = typeof value === 'string' && /^\S.*\S$|^\S$/.test(value) && parseValue(value) === value;
  return isPlain ? value : JSON.stringify(value);
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
