/** Loggers as the library calls them: what they are handed holds no secret, and nothing that they do ends a run. */

import { MAX_DEPTH } from '../json.ts';
import type { Logger } from '../ports/logger.ts';

/** Values of one log line that are copied; there are objects that lead to half of the process. */
const MOST_VALUES = 10_000;
const LEFT_OUT = '...';
const ISO = Date.prototype.toISOString;

/** A logger whose messages and fields hold no secret. It never throws, whatever `logger` does and whatever is logged. */
export function maskLogger(logger: Logger, mask: (text: string) => string): Logger {
  const level = (name: keyof Logger) => (fields: object, message?: string) => {
    try {
      const masked = new FieldCopy(mask).of(fields) as object;
      const written: unknown = logger[name](masked, message === undefined ? undefined : mask(message));
      if (written instanceof Promise) written.catch(() => {});
    } catch {
      // There is nobody left to tell: a log that fails is not a reason to fail a run.
    }
  };
  return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') };
}

/** Copies what is logged: own data alone, for a getter or a `toJSON` would bring back what was masked. */
class FieldCopy {
  readonly #mask: (text: string) => string;
  #left = MOST_VALUES;

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  of(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.#mask(value);
    if (typeof value === 'bigint') return String(value);
    if (typeof value === 'function') return undefined;
    if (typeof value !== 'object' || value === null) return value;
    if (depth > MAX_DEPTH) return LEFT_OUT;
    try {
      if (value instanceof Error) return this.#error(value, depth);
      if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : ISO.call(value);
      if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
      return Array.isArray(value) ? this.#list(value, depth) : this.#object(value, depth);
    } catch {
      return 'a value that can not be read';
    }
  }

  #list(values: readonly unknown[], depth: number): unknown[] {
    const copy: unknown[] = [];
    for (const value of values) {
      if (--this.#left < 0) return [...copy, LEFT_OUT];
      copy.push(this.of(value, depth + 1));
    }
    return copy;
  }

  #object(value: object, depth: number): object {
    const entries: (readonly [string, unknown])[] = [];
    for (const [key, property] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
      const inner: unknown = property.enumerable ? property.value : undefined;
      if (inner === undefined || typeof inner === 'function') continue;
      if (--this.#left < 0) break;
      entries.push([this.#mask(key), this.of(inner, depth + 1)]);
    }
    return Object.fromEntries(entries);
  }

  /** Further fields of an error stay out: drivers keep queries and their parameters in them. */
  #error(error: Error, depth: number): object {
    const read = (key: string): unknown => {
      try {
        return (error as unknown as Record<string, unknown>)[key];
      } catch {
        return undefined;
      }
    };
    const text = (key: string) => {
      const found = read(key);
      return typeof found === 'string' ? this.#mask(found) : '';
    };
    const cause = read('cause');
    // Log serializers ask for an `Error`, and write its own fields.
    return Object.assign(Object.create(Error.prototype), {
      name: text('name'),
      message: text('message'),
      stack: text('stack'),
      ...(typeof read('code') === 'string' && { code: text('code') }),
      ...(cause !== undefined && { cause: this.of(cause, depth + 1) }),
    });
  }
}
