/**
 * Measures JSON values without copying or serializing them.
 *
 * | function             | measures                                            | used for                                    |
 * | -------------------- | --------------------------------------------------- | ------------------------------------------- |
 * | `countedBytes`       | 32 a container, 16 an entry, the length of texts    | the limit of 4 MiB, and what a run keeps    |
 * | `jsonTextBytes`      | the exact UTF-8 bytes of `JSON.stringify(value)`    | limits of records and pages                 |
 * | `maxJsonTextBytes`   | an upper bound of the same, without reading texts   | a first check, before the exact one         |
 * | `memoryBytes`        | about what a stored value takes in memory           | the limit of the memory storage             |
 * | `estimateEntryBytes` | about what a commit entry takes (in `engine/execution`) | sizes of batches, timeouts of storage calls |
 */

import { CONTAINER_BYTES, ENTRY_BYTES, type Json, type JsonObject } from './json.ts';

/** The size that `copySized` counts, for a value that is valid JSON already. */
export function countedBytes(value: Json): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = CONTAINER_BYTES;
  if (Array.isArray(value)) {
    bytes += value.length * ENTRY_BYTES;
    for (let i = 0; i < value.length; i++) bytes += countedBytes(value[i] as Json);
    return bytes;
  }
  // Values made by this library inherit no keys, and `for in` is faster than a list of keys.
  for (const key in value) {
    bytes += key.length + ENTRY_BYTES + countedBytes((value as JsonObject)[key] as Json);
  }
  return bytes;
}

/** Like {@link countedBytes}, with 16 bytes added for each text. */
export function memoryBytes(value: Json): number {
  if (typeof value === 'string') return value.length + ENTRY_BYTES;
  if (typeof value !== 'object' || value === null) return 0;
  let bytes = CONTAINER_BYTES;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) bytes += ENTRY_BYTES + memoryBytes(value[i] as Json);
    return bytes;
  }
  for (const key in value) bytes += ENTRY_BYTES + key.length + memoryBytes((value as JsonObject)[key] as Json);
  return bytes;
}

/** The bytes of `JSON.stringify(value)` in UTF-8, counted up to `maxBytes`. @returns any number above `maxBytes` when there are more */
export function jsonTextBytes(value: Json, maxBytes: number): number {
  return addBytes(value, 0, maxBytes, textBytes, numberBytes);
}

/** An upper bound of {@link jsonTextBytes}. @returns any number above `maxBytes` when there may be more */
export function maxJsonTextBytes(value: Json, maxBytes: number): number {
  return addBytes(value, 0, maxBytes, maxTextBytes, maxNumberBytes);
}

type Measure<T> = (value: T, maxBytes: number) => number;

function addBytes(
  value: Json,
  before: number,
  maxBytes: number,
  ofText: Measure<string>,
  ofNumber: Measure<number>,
): number {
  switch (typeof value) {
    case 'string':
      return before + ofText(value, maxBytes - before);
    case 'number':
      return before + ofNumber(value, maxBytes);
    case 'boolean':
      return before + (value ? 4 : 5);
  }
  if (value === null) return before + 4;
  // Two brackets, and a comma between two entries.
  let bytes = before + 2;
  if (Array.isArray(value)) {
    bytes += Math.max(0, value.length - 1);
    for (let i = 0; i < value.length && bytes <= maxBytes; i++) {
      bytes = addBytes(value[i] as Json, bytes, maxBytes, ofText, ofNumber);
    }
    return bytes;
  }
  const object = value as JsonObject;
  let separators = -1;
  for (const key in object) {
    if (bytes > maxBytes) return bytes;
    separators += 2;
    bytes = addBytes(object[key] as Json, bytes + ofText(key, maxBytes - bytes), maxBytes, ofText, ofNumber);
  }
  return bytes + Math.max(0, separators);
}

/** The longest number in JSON: `-1.2345678901234567e-300`. */
const MAX_NUMBER_BYTES = 24;
/** `\u0000`: the longest escape of one UTF-16 unit. */
const MAX_UNIT_BYTES = 6;
const maxNumberBytes: Measure<number> = () => MAX_NUMBER_BYTES;
const maxTextBytes: Measure<string> = (text) => MAX_UNIT_BYTES * text.length + 2;
const numberBytes: Measure<number> = (value) => String(value).length;

function textBytes(text: string, maxBytes: number): number {
  let bytes = 2;
  for (let i = 0; i < text.length && bytes <= maxBytes; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x80) bytes += code < 0x20 ? controlBytes(code) : code === 0x22 || code === 0x5c ? 2 : 1;
    else if (code < 0x800) bytes += 2;
    else if (code < 0xd800 || code > 0xdfff) bytes += 3;
    else if (code < 0xdc00 && isLowSurrogate(text.charCodeAt(i + 1))) {
      bytes += 4;
      i++;
    }
    // Half of a surrogate pair is written as an escape.
    else bytes += MAX_UNIT_BYTES;
  }
  return bytes;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** \b, \t, \n, \f and \r have short escapes. */
function controlBytes(code: number): number {
  return code >= 8 && code <= 13 && code !== 11 ? 2 : MAX_UNIT_BYTES;
}
