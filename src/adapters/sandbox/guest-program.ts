/** The program that runs inside each virtual machine, around a script: it calls the script and gives its result to the host as JSON text. */

import { MAX_DEPTH } from '../../engine/base/json/json.ts';

/** What a script may send to the host, in characters of JSON text. The engine counts the value again, and allows less. */
export const MAX_REPLY_CHARS = 16 * 1024 * 1024;
/** Lines that a script may log in one call. */
export const MAX_LINES = 100;
/** The longest text and the longest fields of a line, in characters. */
export const MAX_LINE_CHARS = 2000;
const MAX_STACK_CHARS = 4000;
const MAX_MESSAGE_CHARS = 10_000;

/** What the program gives to `reply`, as JSON text. */
export type GuestReply =
  | { readonly kind: 'output'; readonly output: unknown }
  | { readonly kind: 'no-script'; readonly found: string }
  | { readonly kind: 'not-json'; readonly path: string; readonly message: string }
  | {
      readonly kind: 'thrown';
      readonly name?: string;
      readonly message: string;
      readonly stack?: string;
      readonly code?: string;
      readonly details?: unknown;
      readonly retryable?: boolean;
    };

/**
 * An expression whose value is the function `(module, context, reply, log)`. A script can change the built-in objects that it uses, so it
 * keeps its own references; a script that breaks the rest of them breaks only its own result, because the host reads text.
 */
export const GUEST_PROGRAM = `(() => {
  'use strict';
  const { parse, stringify } = JSON;
  const { keys, getPrototypeOf, prototype: objectPrototype } = Object;
  const { isArray } = Array;
  const { isFinite } = Number;
  const toText = String;
  const cut = (text, max) => (text.length > max ? text.slice(0, max) : text);

  class NotJson {
    constructor(path, message) {
      this.path = path;
      this.message = message;
    }
  }
  const place = (path, key) =>
    typeof key === 'number' ? path + '[' + key + ']'
      : /^[A-Za-z_$][\\w$-]{0,79}$/.test(key) ? (path === '' ? key : path + '.' + key)
      : path + '[' + stringify(cut(key, 80)) + ']';
  const hints = { Map: ' (use Object.fromEntries(map))', Set: ' (use [...set])', Error: ' (use error.message)', Promise: ' (await it first)' };

  // The same values as outside of the sandbox: what JSON.stringify would lose is refused, with its place.
  const copy = (given, path, depth, converted) => {
    const value = given;
    const type = typeof value;
    if (value === null || type === 'boolean' || type === 'string' || type === 'undefined') return value;
    if (type === 'number') {
      if (isFinite(value)) return value;
      throw new NotJson(path, "is " + value + ", which JSON can't hold; use null or a string");
    }
    if (!converted && (type === 'bigint' || type === 'object') && typeof value.toJSON === 'function') {
      const json = value.toJSON('');
      if (value instanceof Date && json === null) throw new NotJson(path, 'is an invalid Date; use null, or a valid date');
      return copy(json, path, depth, true);
    }
    if (type !== 'object') throw new NotJson(path, 'is a ' + type + ', which JSON does not have; leave it out, or use a string');
    if (depth >= ${MAX_DEPTH}) throw new NotJson(path, 'is nested deeper than ${MAX_DEPTH} levels, or contains itself');
    if (isArray(value)) {
      const list = [];
      for (let i = 0; i < value.length; i++) list[i] = copy(value[i], place(path, i), depth + 1, false) ?? null;
      return list;
    }
    const prototype = getPrototypeOf(value);
    if (prototype !== objectPrototype && prototype !== null) {
      const name = value instanceof Error ? 'Error' : toText(value.constructor?.name ?? 'class instance');
      throw new NotJson(path, 'is a value of the class ' + cut(name, 80) + (hints[name] ?? '') + ', not plain data');
    }
    const object = { __proto__: null };
    for (const key of keys(value)) {
      if (key === '__proto__') throw new NotJson(place(path, key), 'is a key that is never allowed');
      if (converted && key === 'toJSON') continue;
      const part = copy(value[key], place(path, key), depth + 1, false);
      if (part !== undefined) object[key] = part;
    }
    return object;
  };

  const describe = (thrown) => {
    if (typeof thrown !== 'object' || thrown === null) {
      return { kind: 'thrown', message: cut(typeof thrown === 'string' ? thrown : toText(thrown), ${MAX_MESSAGE_CHARS}) };
    }
    const { name, message, stack, code, details, retryable } = thrown;
    const reply = { kind: 'thrown', message: cut(toText(message || name || 'the script threw a value without a message'), ${MAX_MESSAGE_CHARS}) };
    if (typeof name === 'string') reply.name = cut(name, 100);
    if (typeof stack === 'string') reply.stack = cut(stack, ${MAX_STACK_CHARS});
    if (typeof code === 'string') reply.code = cut(code, 100);
    if (typeof retryable === 'boolean') reply.retryable = retryable;
    try {
      if (typeof details === 'object' && details !== null) reply.details = copy(details, '', 0, false);
    } catch {}
    return reply;
  };

  const shown = (part) => {
    if (typeof part === 'string') return part;
    if (part instanceof Error) return toText(part);
    try {
      return stringify(part) ?? toText(part);
    } catch {
      return typeof part;
    }
  };
  const line = (log, level, fields, message) => {
    let text = '{}';
    try {
      text = stringify(copy(fields, '', 0, false));
    } catch {}
    log(level, text.length > ${MAX_LINE_CHARS} ? '{}' : text, cut(message, ${MAX_LINE_CHARS}));
  };
  const createLogger = (log) => {
    const logger = { __proto__: null };
    for (const level of ['debug', 'info', 'warn', 'error']) {
      logger[level] = (fields, message) => {
        if (typeof fields === 'object' && fields !== null) line(log, level, fields, message === undefined ? '' : shown(message));
        else line(log, level, {}, shown(fields));
      };
    }
    return logger;
  };
  const createConsole = (log) => {
    const levels = { debug: 'debug', trace: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'error' };
    const console = {};
    for (const method of keys(levels)) {
      console[method] = (...parts) => line(log, levels[method], {}, parts.map(shown).join(' '));
    }
    return console;
  };

  return (log) => {
    globalThis.console = createConsole(log);
    const logger = createLogger(log);
    const run = async (loading, context) => {
      const { default: script } = await loading;
      if (typeof script !== 'function') return { kind: 'no-script', found: script === undefined ? 'nothing' : typeof script };
      const output = await script({ ...parse(context), logger });
      try {
        return { kind: 'output', output: copy(output, '', 0, false) ?? null };
      } catch (thrown) {
        if (thrown instanceof NotJson) return { kind: 'not-json', path: thrown.path, message: thrown.message };
        throw thrown;
      }
    };
    return async (loading, context, reply) => {
      let answer;
      try {
        answer = await run(loading, context);
      } catch (thrown) {
        try {
          answer = describe(thrown);
        } catch {
          answer = { kind: 'thrown', message: "the script threw a value that can't be read" };
        }
      }
      let text = stringify(answer);
      if (text.length > ${MAX_REPLY_CHARS}) text = stringify({ kind: 'not-json', path: '', message: 'is larger than the limit of 4 MiB; store it and pass a key' });
      reply(text);
    };
  };
})()`;
