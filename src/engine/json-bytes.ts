/** How many bytes a value takes: as JSON text, without writing it, and in memory. */

import type { Json, JsonObject } from './json.ts';

/** @returns the bytes of `JSON.stringify(value)` in UTF-8; any number above `most` when there are more */
export function jsonBytes(value: Json, most: number): number {
  return count(value, 0, most, textBytes, numberBytes);
}

/** At most so many; costs no look at what is in a text. @returns any number above `most` when there may be more */
export function mostJsonBytes(value: Json, most: number): number {
  return count(value, 0, most, mostTextBytes, mostNumberBytes);
}

/** Of an object or a list in memory, of each of its entries, and of a text beside its characters. */
const CONTAINER_BYTES = 32;
const ENTRY_BYTES = 16;

/** Roughly what a value takes in memory: an empty object is not 2 bytes there. */
export function heldBytes(value: Json): number {
  if (typeof value === 'string') return value.length + ENTRY_BYTES;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = CONTAINER_BYTES;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) bytes += ENTRY_BYTES + heldBytes(value[i] as Json);
    return bytes;
  }
  for (const key in value) bytes += ENTRY_BYTES + key.length + heldBytes((value as JsonObject)[key] as Json);
  return bytes;
}

type Bytes<T> = (value: T, most: number) => number;

function count(value: Json, before: number, most: number, ofText: Bytes<string>, ofNumber: Bytes<number>): number {
  switch (typeof value) {
    case 'string':
      return before + ofText(value, most - before);
    case 'number':
      return before + ofNumber(value, most);
    case 'boolean':
      return before + (value ? 4 : 5);
  }
  if (value === null) return before + 4;
  // The brackets, and the commas between.
  let bytes = before + 2;
  if (Array.isArray(value)) {
    bytes += Math.max(0, value.length - 1);
    for (let i = 0; i < value.length && bytes <= most; i++) {
      bytes = count(value[i] as Json, bytes, most, ofText, ofNumber);
    }
    return bytes;
  }
  const object = value as JsonObject;
  let separators = -1;
  for (const key in object) {
    if (bytes > most) return bytes;
    separators += 2;
    bytes = count(object[key] as Json, bytes + ofText(key, most - bytes), most, ofText, ofNumber);
  }
  return bytes + Math.max(0, separators);
}

/** The longest that JSON has: `-1.2345678901234567e-300`. */
const MOST_NUMBER_BYTES = 24;
/** `\u0000`, for one unit of a text. */
const MOST_UNIT_BYTES = 6;
const mostNumberBytes: Bytes<number> = () => MOST_NUMBER_BYTES;
const mostTextBytes: Bytes<string> = (text) => MOST_UNIT_BYTES * text.length + 2;
const numberBytes: Bytes<number> = (value) => String(value).length;

function textBytes(text: string, most: number): number {
  let bytes = 2;
  for (let i = 0; i < text.length && bytes <= most; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x80) bytes += code < 0x20 ? controlBytes(code) : code === 0x22 || code === 0x5c ? 2 : 1;
    else if (code < 0x800) bytes += 2;
    else if (code < 0xd800 || code > 0xdfff) bytes += 3;
    else if (code < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) {
      bytes += 4;
      i++;
    }
    // Half a pair is written as an escape.
    else bytes += MOST_UNIT_BYTES;
  }
  return bytes;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** \b, \t, \n, \f and \r have short escapes. */
function controlBytes(code: number): number {
  return code >= 8 && code <= 13 && code !== 11 ? 2 : MOST_UNIT_BYTES;
}
