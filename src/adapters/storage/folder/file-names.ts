/**
 * The places of objects in a folder. Each segment of a key is a folder, and the last one is a file whose name ends in `~`, so that `a` and
 * `a/b` can both be stored. A name has only characters that every file system keeps apart: lower-case letters, digits, `_`, `-` and inner
 * dots. Every other byte is `%` and two hexadecimal digits. A long segment continues in a folder whose name ends in `+`.
 */

/** The longest name, in characters. File systems allow 255 bytes. */
const MAX_NAME = 200;
/** The name of an empty segment. */
const EMPTY = '%';
/** Names that Windows keeps for devices, also with an extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/;

export const FILE_END = '~';
const CONTINUED_END = '+';

/** The names of the folders that lead to a key's file, and the name of the file. */
export function pathOf(key: string): readonly string[] {
  const segments = key.split('/');
  const names = segments.flatMap((segment) => namesOf(segment));
  return [...names.slice(0, -1), `${names.at(-1)}${FILE_END}`];
}

/** One segment: a name, or several for a long one. A segment that just fills a name continues with an empty one. */
function namesOf(segment: string): readonly string[] {
  const names: string[] = [];
  let name = '';
  const bytes = new TextEncoder().encode(segment);
  for (const [i, byte] of bytes.entries()) {
    name += unitOf(byte, name.length, i === bytes.length - 1);
    if (name.length < MAX_NAME) continue;
    names.push(`${withoutDevice(name)}${CONTINUED_END}`);
    name = '';
  }
  return [...names, name === '' ? EMPTY : withoutDevice(name)];
}

// A dot near the end of a full name is always escaped: otherwise the escape of a last dot could make a name continue that does not
// continue with more text, and the keys of the two would not be listed in order.
function unitOf(byte: number, at: number, isLast: boolean): string {
  const character = String.fromCharCode(byte);
  const isInnerDot = character === '.' && at > 0 && !isLast && at + 3 < MAX_NAME;
  return isInnerDot || /[a-z0-9_-]/.test(character) ? character : escapeByte(byte);
}

function withoutDevice(name: string): string {
  return DEVICE.test(name) ? `${escapeByte(name.charCodeAt(0))}${name.slice(1)}` : name;
}

function escapeByte(byte: number): string {
  return `%${byte.toString(16).padStart(2, '0')}`;
}

/** An entry of a folder. */
export interface Entry {
  readonly name: string;
  /** An object, a segment with further segments, or the beginning of a long segment. */
  readonly kind: 'object' | 'segment' | 'continued';
  /** The bytes that the entry adds to a key; those of a segment end with `/`. */
  readonly bytes: Uint8Array;
}

/** @returns the entry; undefined for a name that no key has, such as a file of another program */
export function toEntry(name: string): Entry | undefined {
  const kind = name.endsWith(FILE_END) ? 'object' : name.endsWith(CONTINUED_END) ? 'continued' : 'segment';
  const text = kind === 'segment' ? name : name.slice(0, -1);
  const escaped = text === EMPTY ? '' : text;
  if (!/^(?:[a-z0-9_.-]|%[0-9a-f]{2})*$/.test(escaped) || text === '' || text.startsWith('.')) return undefined;
  const bytes: number[] = [];
  for (const [unit] of escaped.matchAll(/%..|./g)) {
    bytes.push(unit.length === 3 ? Number.parseInt(unit.slice(1), 16) : unit.charCodeAt(0));
  }
  if (kind === 'segment') bytes.push(0x2f);
  return { name, kind, bytes: Uint8Array.from(bytes) };
}
