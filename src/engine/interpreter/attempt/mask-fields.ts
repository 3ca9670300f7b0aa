/** Copies values that are logged or kept with a failure: plain data, with secrets masked. */

import { MAX_DEPTH } from '../../base/json/json.ts';

/** The maximum number of values in one copy: some objects refer to half of the process. */
const MAX_VALUES = 10_000;
/** Replaces what is left out. */
export const LEFT_OUT = '...';
const ISO = Date.prototype.toISOString;
const TYPE = Object.prototype.toString;

/** Copies own data properties only: a getter or a `toJSON` would bring back what was masked. */
export class FieldCopy {
  readonly #mask: (text: string) => string;
  readonly #withStacks: boolean;
  #left = MAX_VALUES;

  /** @param withStacks - whether copies of errors have their `stack` and `cause` */
  constructor(mask: (text: string) => string, withStacks: boolean) {
    this.#mask = mask;
    this.#withStacks = withStacks;
  }

  of(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.#mask(value);
    if (typeof value === 'bigint') return String(value);
    if (typeof value === 'function') return undefined;
    if (typeof value !== 'object' || value === null) return value;
    if (depth > MAX_DEPTH) return LEFT_OUT;
    try {
      // An error of another realm is not an instance of this realm's class.
      if (value instanceof Error || TYPE.call(value) === '[object Error]') return this.#error(value, depth);
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
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      const inner: unknown = Object.getOwnPropertyDescriptor(value, key)?.value;
      // JSON of the library has no key `__proto__`.
      if (inner === undefined || typeof inner === 'function' || key === '__proto__') continue;
      if (--this.#left < 0) break;
      copy[this.#mask(key)] = this.of(inner, depth + 1);
    }
    return copy;
  }

  /** Other fields of an error are left out: database drivers keep queries and their parameters there. */
  #error(error: object, depth: number): object {
    const read = (key: string): unknown => {
      try {
        return (error as Record<string, unknown>)[key];
      } catch {
        return undefined;
      }
    };
    const text = (key: string) => {
      const found = read(key);
      return typeof found === 'string' ? this.#mask(found) : '';
    };
    const cause = this.#withStacks ? read('cause') : undefined;
    // Log serializers check `instanceof Error`, and write own fields.
    return Object.assign(Object.create(Error.prototype), {
      name: text('name'),
      message: text('message'),
      ...(this.#withStacks && { stack: text('stack') }),
      ...(typeof read('code') === 'string' && { code: text('code') }),
      ...(cause !== undefined && { cause: this.of(cause, depth + 1) }),
    });
  }
}
