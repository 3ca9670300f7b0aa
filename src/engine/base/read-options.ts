/** The checks of options: of `createOrchestrator`, its methods and every factory. */

import { suggestName } from './suggest-name.ts';
import { DURATION_RULE, type Duration, isDuration, toMs } from './time/duration.ts';
import { describeValue } from './wording.ts';

/** Words of other libraries, and the word for the same option here. */
const WORDS: Readonly<Record<string, string>> = {
  ...{ connectionString: 'url', endpoint: 'url', uri: 'url', address: 'url' },
  ...{ file: 'path', filename: 'path', folder: 'path', prefix: 'namespace' },
  ...{ timeoutMs: 'timeout', queryTimeoutMs: 'timeout', busyTimeoutMs: 'timeout' },
};

/** @returns what is wrong with the value, such as `must be true or false`; undefined if nothing is */
export type OptionCheck = (value: unknown) => string | undefined;

/** Has a check for every option, so that a new one can't be forgotten. */
export type OptionChecks<O> = { readonly [K in keyof Required<O>]: OptionCheck };

/**
 * @param who - the factory, which its errors name
 * @throws TypeError for a value that is not an object, for an unknown option, with the nearest known one, and for a wrong value
 */
export function readOptions<O extends object>(who: string, options: O, checks: OptionChecks<O>): O {
  refuseUnknownKeys(options, Object.keys(checks), who);
  for (const [key, check] of Object.entries<OptionCheck>(checks)) {
    const problem = check((options as Readonly<Record<string, unknown>>)[key]);
    if (problem !== undefined) throw new TypeError(`${who}: \`${key}\` ${problem}`);
  }
  return options;
}

/** @throws TypeError for a value that is not an object, and for an unknown key, with the nearest known one */
export function refuseUnknownKeys(options: object, known: readonly string[], what: string): void {
  if (typeof options !== 'object' || options === null) throw new TypeError(`${what}: options must be an object`);
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const word = Object.hasOwn(WORDS, key) ? WORDS[key] : undefined;
    const near = word !== undefined && known.includes(word) ? word : suggestName(key, known);
    const help = near ? `did you mean \`${near}\`?` : `the options are ${known.join(', ')}`;
    throw new TypeError(`${what}: \`${key}\` is not an option of this version; ${help}`);
  }
}

/** An option that may be absent. @param rule - such as `text of 1 to 128 characters` */
export function optional<T>(rule: string, isRight: (value: T) => boolean): OptionCheck {
  return (value) => (value === undefined || isRight(value as T) ? undefined : `must be ${rule}`);
}

/** An option that must be there. */
export function requiredOption<T>(rule: string, isRight: (value: T) => boolean): OptionCheck {
  return (value) => (value !== undefined && isRight(value as T) ? undefined : `must be ${rule}`);
}

/** An option that is checked by other code. */
export const checkedLater: OptionCheck = () => undefined;

export const flag: OptionCheck = withValue(optional('true or false', (value) => typeof value === 'boolean'));

export const aFunction: OptionCheck = optional('a function', (value) => typeof value === 'function');

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): OptionCheck {
  const rule =
    max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${groupDigits(min)} to ${groupDigits(max)}`;
  const isRight = (value: number) => Number.isSafeInteger(value) && value >= min && value <= max;
  return withValue(optional(`a whole number ${rule}`, isRight));
}

function groupDigits(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

export function oneOf(...values: readonly string[]): OptionCheck {
  const rule = values.map((value) => `'${value}'`).join(' or ');
  return withValue(optional(rule, (value: string) => values.includes(value)));
}

/** A duration above 0. With a maximum, it is a whole number of milliseconds. */
export function duration(minMs = 0, maxMs?: number): OptionCheck {
  const rule = maxMs === undefined ? 'above 0' : `from ${groupDigits(minMs)} to ${groupDigits(maxMs)} ms`;
  const isWithin = (ms: number) => ms >= minMs && (maxMs === undefined || (Number.isSafeInteger(ms) && ms <= maxMs));
  return (value) => {
    if (value === undefined || (isDuration(value) && isWithin(toMs(value as Duration)))) return undefined;
    return `${DURATION_RULE}, ${rule}, not ${describeValue(value)}`;
  };
}

export const someText: OptionCheck = optional('text', (value) => typeof value === 'string');

export const httpAddress: OptionCheck = optional<string>(
  'an http or https address without a user name, a query and a fragment',
  (text) => {
    if (!URL.canParse(text)) return false;
    const { protocol, username, search, hash } = new URL(text);
    return /^https?:$/.test(protocol) && username === '' && search === '' && hash === '';
  },
);

/** Text that is not empty. */
export function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

export function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

export function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value is text that matches. */
export function like(pattern: RegExp): (value: unknown) => boolean {
  return (value) => typeof value === 'string' && pattern.test(value);
}

/** An object with these methods. @param rule - such as `a Pool of `pg`` */
export function withMethods(rule: string, ...methods: readonly string[]): OptionCheck {
  return optional(rule, (value) => hasMethods(value, methods));
}

/** Whether a value has methods with these names. */
export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  return methods.every((name) => typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function');
}

/** Says which value is wrong. Only for values that can't be secret. */
function withValue(check: OptionCheck): OptionCheck {
  return (value) => {
    const problem = check(value);
    return problem === undefined ? undefined : `${problem}, not ${describeValue(value)}`;
  };
}
