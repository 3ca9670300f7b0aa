/** What the checks of JSON Schemas are made of: a rule for each schema, and what one run of a check holds. */

import { isMap } from '../base/json/is-map.ts';
import type { Json, JsonObject } from '../base/json/json.ts';
import { formatPath } from '../base/json/json.ts';
import { MAX_NAMED, type suggestForMany } from '../base/suggest-name.ts';
import type { SchemaIndex } from './schema-index.ts';

export interface ValueProblem {
  /** Path in the value; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}

/** Checks a value. @returns the value with the defaults of missing properties, or its problems */
export type ValueCheck = (value: Json) => { readonly value: Json } | { readonly problems: readonly ValueProblem[] };

/** One check of one value. */
export interface Run {
  /** The path of the part that is checked now. */
  readonly path: (string | number)[];
  /** Undefined when only the verdict is asked for. */
  readonly problems: ValueProblem[] | undefined;
  hasFailed: boolean;
  /** Shared by all runs of a check: a schema that refers to itself can need exponentially many steps. */
  readonly steps: { left: number };
  readonly suggest: ReturnType<typeof suggestForMany>;
  /** What schemas of this value have checked of its parts, for `unevaluatedProperties` and `unevaluatedItems`. Undefined: nobody asks. */
  seen?: Seen | undefined;
  /** The addresses of the resources on the way to this schema, the outermost first, for `$dynamicRef`. */
  readonly scope: string[];
  /** What is checked, for messages. */
  readonly what: string;
}

/** The parts of one value that schemas have checked. */
export interface Seen {
  readonly keys: Set<string | number>;
  all: boolean;
}

export function newSeen(): Seen {
  return { keys: new Set(), all: false };
}

export function addSeen(seen: Seen | undefined, more: Seen | undefined): void {
  if (!seen || !more) return;
  if (more.all) seen.all = true;
  for (const key of more.keys) seen.keys.add(key);
}

/** Reports the problems of a value to the run. @returns the value, or a copy with defaults */
export type Rule = (value: Json, run: Run) => Json;
/** What creates the rules of one schema. */
export interface Compiler {
  compile(schema: Json): Rule;
  /** The schema that the `$ref` of a schema leads to. */
  target(from: JsonObject): Json;
  readonly index: SchemaIndex;
}
export type Keyword = (schema: JsonObject, compiler: Compiler) => Rule;

/** Up to a second. Each entry of the largest value can be checked by ten keywords. */
export const MAX_STEPS = 2_000_000;

/** Thrown by a rule, and caught by the check. */
export class TooManySteps extends Error {}

export const accept: Rule = (value) => value;
export const refuse: Rule = (value, run) => {
  reportProblem(run, () => 'is not allowed');
  return value;
};

export function typesOf({ type }: JsonObject): readonly string[] {
  return (type === undefined ? [] : Array.isArray(type) ? type : [type]) as readonly string[];
}

/** A schema, and those that its `$ref` leads to. */
export function chain(schema: Json, target: Compiler['target']): readonly JsonObject[] {
  const found: JsonObject[] = [];
  for (let next = schema; isMap(next); next = typeof next.$ref === 'string' ? target(next) : true) found.push(next);
  return found;
}

export function ofMap(rule: (map: JsonObject, run: Run) => JsonObject): Rule {
  return (value, run) => (isMap(value) ? rule(value, run) : value);
}

export function ofList(rule: (list: readonly Json[], run: Run) => readonly Json[]): Rule {
  return (value, run) => (Array.isArray(value) ? rule(value, run) : value);
}

/** The verdict of a rule, without problems. */
export function attempt(
  rule: Rule,
  value: Json,
  run: Run,
): { readonly out: Json; readonly hasFailed: boolean; readonly seen: Seen | undefined } {
  spend(run, 2);
  const seen = run.seen && newSeen();
  const verdict: Run = { ...run, problems: undefined, hasFailed: false, seen };
  const out = rule(value, verdict);
  return { out, hasFailed: verdict.hasFailed, seen };
}

type Container = JsonObject | readonly Json[];
type Parts = Record<string | number, Json>;

/** Checks one part. @returns `out`, with the part if that has changed */
export function checkPart<T extends Container>(whole: T, out: T, key: string | number, rule: Rule, run: Run): T {
  if (rule === accept) return out;
  const part = (out as Parts)[key] as Json;
  const { seen } = run;
  run.seen = undefined;
  run.path.push(key);
  const checked = rule(part, run);
  run.path.pop();
  run.seen = seen;
  return checked === part ? out : withPart(whole, out, key, checked);
}

/** Copies the whole before the first change. */
export function withPart<T extends Container>(whole: T, out: T, key: string | number, part: Json): T {
  const copy = (out !== whole ? out : Array.isArray(whole) ? [...whole] : { ...whole }) as T;
  (copy as Parts)[key] = part;
  return copy;
}

export function reportProblem(run: Run, message: () => string, ...key: (string | number)[]): void {
  run.hasFailed = true;
  if (explains(run)) run.problems?.push({ path: formatPath([...run.path, ...key]), message: message() });
}

/** Whether the run takes more problems: one more than the keys that are named, for the number of the others. */
export function explains({ problems }: Run): boolean {
  return problems !== undefined && problems.length <= MAX_NAMED;
}

export function spend({ steps }: Run, count: number): void {
  steps.left -= count;
  if (steps.left < 0) throw new TooManySteps();
}
