/** Compiles a JSON Schema to a check that reports every problem of a value and fills in the defaults of missing properties. */

import type { Json, JsonObject } from '../base/json/json.ts';
import { canonicalJson, copyJson, equalJson, formatPath, JsonError } from '../base/json/json.ts';
import { MAX_NAMED, suggestForMany } from '../base/suggest-name.ts';
import { quoted } from '../base/wording.ts';
import { isMap, resolveRef } from './check-json-schema.ts';
import { CHARACTERS_A_STEP, hasType, LIMITS, SORTED_CHARACTERS_A_STEP, typeMessage } from './json-limits.ts';

export interface ValueProblem {
  /** Path in the value; empty for the value itself. */
  readonly path: string;
  readonly message: string;
}

/** Checks a value. @returns the value with the defaults of missing properties, or its problems */
export type ValueCheck = (value: Json) => { readonly value: Json } | { readonly problems: readonly ValueProblem[] };

/** One check of one value. */
interface Run {
  /** The path of the part that is checked now. */
  readonly path: (string | number)[];
  /** Undefined when only the verdict is asked for. */
  readonly problems: ValueProblem[] | undefined;
  hasFailed: boolean;
  /** Shared by all runs of a check: a schema that refers to itself can need exponentially many steps. */
  readonly steps: { left: number };
  readonly suggest: ReturnType<typeof suggestForMany>;
}

/** Reports the problems of a value to the run. @returns the value, or a copy with defaults */
type Rule = (value: Json, run: Run) => Json;
/** What creates the rules of one schema. */
interface Compiler {
  compile(schema: Json): Rule;
  /** The schema of a `$ref`. */
  target(ref: string): Json;
}
type Keyword = (schema: JsonObject, compiler: Compiler) => Rule;

/** Up to a second. Each entry of the largest value can be checked by ten keywords. */
const MAX_STEPS = 2_000_000;
const TOO_LARGE = 'needs too many steps to be checked with the JSON Schema';

/** Thrown and caught only in this file. */
class TooManySteps extends Error {}

/** @param root - a schema that `checkJsonSchema` accepts */
export function compileJsonSchema(root: JsonObject): ValueCheck {
  const known = new Map<JsonObject, Rule>();
  const compiler: Compiler = {
    compile(schema) {
      if (!isMap(schema)) return schema === false ? refuse : accept;
      const rule = known.get(schema) ?? compileMap(schema, compiler);
      known.set(schema, rule);
      return rule;
    },
    target: (ref) => resolveRef(root, ref)?.schema ?? true,
  };
  const check = compiler.compile(root);
  return (input) => {
    const problems: ValueProblem[] = [];
    const steps = { left: MAX_STEPS };
    try {
      const value = check(input, { path: [], problems, hasFailed: false, steps, suggest: suggestForMany() });
      if (problems.length > 0) return { problems };
      // A small input can have many places for a large default.
      return { value: value === input ? input : copyJson(value) };
    } catch (error) {
      if (error instanceof JsonError) return { problems: [error.problem] };
      if (error instanceof TooManySteps) return { problems: [{ path: '', message: TOO_LARGE }] };
      throw error;
    }
  };
}

const accept: Rule = (value) => value;
const refuse: Rule = (value, run) => {
  reportProblem(run, () => 'is not allowed');
  return value;
};

function compileMap(schema: JsonObject, compiler: Compiler): Rule {
  const given = (table: object) => Object.keys(table).filter((keyword) => Object.hasOwn(schema, keyword));
  const limits = given(LIMITS).map((keyword) => LIMITS[keyword]?.(schema[keyword] as never, schema));
  const keywords = new Set(given(KEYWORDS).map((keyword) => KEYWORDS[keyword] as Keyword));
  const rules = [...keywords].map((keyword) => keyword(schema, compiler));
  const types = typesOf(schema);
  return (value, run) => {
    spend(run, 1 + limits.length * (0.25 + (typeof value === 'string' ? value.length / CHARACTERS_A_STEP : 0)));
    if (types.length > 0 && !types.some((type) => hasType(value, type))) {
      reportProblem(run, () => typeMessage(types, value));
      return value;
    }
    for (const limit of limits) {
      if (limit?.holds(value, (steps) => spend(run, steps)) === false) reportProblem(run, () => limit.message(value));
    }
    return applyAll(rules, value, run);
  };
}

function applyAll(rules: readonly Rule[], value: Json, run: Run): Json {
  let out = value;
  for (const rule of rules) {
    if (run.hasFailed && run.problems === undefined) break;
    out = rule(out, run);
  }
  return out;
}

/** The keywords that look at parts of a value, or that contain schemas, in the order in which they are applied. */
const KEYWORDS: Readonly<Record<string, Keyword>> = {
  uniqueItems,
  propertyNames,
  properties,
  patternProperties: properties,
  additionalProperties: properties,
  prefixItems: items,
  items,
  contains,
  required: requireListed,
  dependentRequired: dependencies,
  dependentSchemas: dependencies,
  dependencies,
  $ref: refer,
  allOf,
  anyOf: choice('anyOf'),
  oneOf: choice('oneOf'),
  not,
  if: conditional,
};

function properties(schema: JsonObject, { compile, target }: Compiler): Rule {
  const named = Object.entries((schema.properties ?? {}) as JsonObject);
  const rules = new Map(named.map(([key, inner]) => [key, compile(inner)]));
  const defaults = named.flatMap(([key, inner]) => {
    const fallback = chain(inner, target).find((one) => one.default !== undefined)?.default;
    return fallback === undefined ? [] : [[key, fallback] as const];
  });
  const patterns = Object.entries((schema.patternProperties ?? {}) as JsonObject).map(
    ([source, inner]) => [new RegExp(source, 'u'), compile(inner)] as const,
  );
  const other = compile(schema.additionalProperties ?? true);
  const isClosed = schema.additionalProperties === false;
  return ofMap((map, run) => {
    let out = map;
    const unknown: string[] = [];
    for (const key of Object.keys(map)) {
      const own = rules.get(key);
      spend(run, 1 + patterns.length * (1 + key.length / CHARACTERS_A_STEP));
      const matching = patterns.filter(([pattern]) => pattern.test(key)).map(([, rule]) => rule);
      const fitting = own ? [own, ...matching] : matching;
      if (fitting.length === 0 && isClosed) unknown.push(key);
      else for (const rule of fitting.length > 0 ? fitting : [other]) out = checkPart(map, out, key, rule, run);
    }
    reportUnknown(unknown, run);
    spend(run, defaults.length);
    for (const [key, fallback] of defaults) if (!Object.hasOwn(map, key)) out = withPart(map, out, key, fallback);
    return out;
  });
}

function reportUnknown(keys: readonly string[], run: Run): void {
  for (const key of keys.slice(0, MAX_NAMED)) reportProblem(run, () => `${quoted(key)} is not a key of the input`, key);
  const more = keys.length - MAX_NAMED;
  if (more > 0) reportProblem(run, () => `has ${more} more keys that do not belong to the input`);
}

function propertyNames(schema: JsonObject, { compile }: Compiler): Rule {
  const rule = compile(schema.propertyNames as Json);
  return ofMap((map, run) => {
    for (const key of Object.keys(map)) {
      const explain = () => {
        const problems: ValueProblem[] = [];
        rule(key, { ...run, problems });
        return `${quoted(key)} is not an allowed key: it ${problems[0]?.message}`;
      };
      if (attempt(rule, key, run).hasFailed) reportProblem(run, explain, key);
    }
    return map;
  });
}

function requireListed(schema: JsonObject): Rule {
  return requireKeys(schema.required as readonly string[], schema, 'is required');
}

function requireKeys(keys: readonly string[], { properties: declared = {} }: JsonObject, message: string): Rule {
  return ofMap((map, run) => {
    spend(run, keys.length);
    let undeclared: readonly string[] | undefined;
    for (const key of keys) {
      if (Object.hasOwn(map, key)) continue;
      const explain = () => {
        undeclared ??= Object.keys(map).filter((given) => !Object.hasOwn(declared as JsonObject, given));
        const near = run.suggest(key, undeclared);
        return near === undefined ? message : `${message}; ${quoted(near)} was given`;
      };
      reportProblem(run, explain, key);
    }
    return map;
  });
}

function dependencies(schema: JsonObject, { compile }: Compiler): Rule {
  const rules = ['dependentRequired', 'dependentSchemas', 'dependencies'].flatMap((keyword) =>
    Object.entries((schema[keyword] ?? {}) as JsonObject).map(([key, needs]) => {
      const rule = Array.isArray(needs)
        ? requireKeys(needs, schema, `is required when ${quoted(key)} is given`)
        : compile(needs);
      return [key, rule] as const;
    }),
  );
  return ofMap((map, run) => {
    spend(run, rules.length);
    return rules.reduce((out, [key, rule]) => (Object.hasOwn(map, key) ? (rule(out, run) as JsonObject) : out), map);
  });
}

function items(schema: JsonObject, { compile }: Compiler): Rule {
  // In draft 7, `items` is the list, and `additionalItems` is what `items` is now.
  const isOlder = Array.isArray(schema.items);
  const first = ((isOlder ? schema.items : schema.prefixItems) ?? []) as readonly Json[];
  const rules = first.map(compile);
  const other = compile((isOlder ? schema.additionalItems : schema.items) ?? true);
  return ofList((list, run) => {
    spend(run, list.length / 4);
    return list.reduce<readonly Json[]>((out, _, i) => checkPart(list, out, i, rules[i] ?? other, run), list);
  });
}

function uniqueItems({ uniqueItems: isWanted }: JsonObject): Rule {
  if (isWanted !== true) return accept;
  return ofList((list, run) => {
    const seen = new Map<string, number>();
    for (const [i, entry] of list.entries()) {
      const text = canonicalJson(entry);
      spend(run, 1 + text.length / SORTED_CHARACTERS_A_STEP);
      const before = seen.get(text);
      if (before === undefined) seen.set(text, i);
      else reportProblem(run, () => `is equal to the entry ${before}, but all entries must differ`, i);
    }
    return list;
  });
}

function contains(schema: JsonObject, { compile }: Compiler): Rule {
  const rule = compile(schema.contains as Json);
  const { minContains: min = 1, maxContains: max = Number.POSITIVE_INFINITY } = schema;
  return ofList((list, run) => {
    const count = list.filter((entry) => !attempt(rule, entry, run).hasFailed).length;
    const bound = count < Number(min) ? `at least ${min}` : count > Number(max) ? `at most ${max}` : undefined;
    if (bound !== undefined)
      reportProblem(run, () => `must fit \`contains\` with ${bound} of its entries, not with ${count}`);
    return list;
  });
}

// A schema may refer to itself, so the target is compiled at its first use.
function refer({ $ref }: JsonObject, { compile, target }: Compiler): Rule {
  let rule: Rule | undefined;
  return (value, run) => {
    rule ??= compile(target($ref as string));
    return rule(value, run);
  };
}

function allOf(schema: JsonObject, { compile }: Compiler): Rule {
  const rules = (schema.allOf as readonly Json[]).map(compile);
  return (value, run) => applyAll(rules, value, run);
}

function choice(keyword: 'anyOf' | 'oneOf'): Keyword {
  return (schema, { compile, target }) => {
    const schemas = schema[keyword] as readonly Json[];
    const rules = schemas.map(compile);
    const options = schemas.map((one) => chain(one, target));
    const types = options.map((option) => option.flatMap(typesOf));
    return (value, run) => {
      const fitting: Json[] = [];
      for (const rule of rules) {
        const { hasFailed, out } = attempt(rule, value, run);
        if (!hasFailed) fitting.push(out);
        if (fitting.length > 0 && keyword === 'anyOf') break;
      }
      if (fitting.length === 1) return fitting[0] as Json;
      if (fitting.length > 1) {
        reportProblem(run, () => `fits ${fitting.length} schemas of \`oneOf\`, but must fit only one`);
        return value;
      }
      const meant = explains(run) ? rules.filter((_, i) => options[i]?.every((one) => isMeant(one, value))) : [];
      // The problems of the schema that was meant say more than that no schema fits.
      if (meant[0] && meant.length === 1) return meant[0](value, run);
      const isAboutType = meant.length === 0 && types.every(({ length }) => length > 0);
      reportProblem(run, () =>
        isAboutType
          ? typeMessage(new Set(types.flat()), value)
          : `fits none of the ${rules.length} schemas of ${quoted(keyword)}`,
      );
      return value;
    };
  };
}

/** Whether the type of the value and the constants in it allow that its author meant this schema. */
function isMeant(schema: JsonObject, value: Json): boolean {
  const types = typesOf(schema);
  if (types.length > 0 && !types.some((type) => hasType(value, type))) return false;
  return Object.entries((schema.properties ?? {}) as JsonObject).every(
    ([key, inner]) =>
      !isMap(inner) ||
      inner.const === undefined ||
      !isMap(value) ||
      !Object.hasOwn(value, key) ||
      equalJson(inner.const, value[key] as Json),
  );
}

function not(schema: JsonObject, { compile }: Compiler): Rule {
  const rule = compile(schema.not as Json);
  return (value, run) => {
    if (!attempt(rule, value, run).hasFailed) reportProblem(run, () => 'is not allowed: it fits the schema of `not`');
    return value;
  };
}

function conditional(schema: JsonObject, { compile }: Compiler): Rule {
  const [test, then, otherwise] = [schema.if, schema.then ?? true, schema.else ?? true].map((one) =>
    compile(one as Json),
  );
  return (value, run) => {
    const rule = attempt(test as Rule, value, run).hasFailed ? otherwise : then;
    return (rule as Rule)(value, run);
  };
}

/** A schema, and those that its `$ref` leads to. */
function chain(schema: Json, target: Compiler['target']): readonly JsonObject[] {
  const found: JsonObject[] = [];
  for (let next = schema; isMap(next); next = typeof next.$ref === 'string' ? target(next.$ref) : true)
    found.push(next);
  return found;
}

function typesOf({ type }: JsonObject): readonly string[] {
  return (type === undefined ? [] : Array.isArray(type) ? type : [type]) as readonly string[];
}

function ofMap(rule: (map: JsonObject, run: Run) => JsonObject): Rule {
  return (value, run) => (isMap(value) ? rule(value, run) : value);
}

function ofList(rule: (list: readonly Json[], run: Run) => readonly Json[]): Rule {
  return (value, run) => (Array.isArray(value) ? rule(value, run) : value);
}

/** The verdict of a rule, without problems. */
function attempt(rule: Rule, value: Json, run: Run): { readonly out: Json; readonly hasFailed: boolean } {
  spend(run, 2);
  const verdict: Run = { ...run, problems: undefined, hasFailed: false };
  const out = rule(value, verdict);
  return { out, hasFailed: verdict.hasFailed };
}

type Container = JsonObject | readonly Json[];
type Parts = Record<string | number, Json>;

/** Checks one part. @returns `out`, with the part if that has changed */
function checkPart<T extends Container>(whole: T, out: T, key: string | number, rule: Rule, run: Run): T {
  if (rule === accept) return out;
  const part = (out as Parts)[key] as Json;
  run.path.push(key);
  const checked = rule(part, run);
  run.path.pop();
  return checked === part ? out : withPart(whole, out, key, checked);
}

/** Copies the whole before the first change. */
function withPart<T extends Container>(whole: T, out: T, key: string | number, part: Json): T {
  const copy = (out !== whole ? out : Array.isArray(whole) ? [...whole] : { ...whole }) as T;
  (copy as Parts)[key] = part;
  return copy;
}

function reportProblem(run: Run, message: () => string, ...key: (string | number)[]): void {
  run.hasFailed = true;
  if (explains(run)) run.problems?.push({ path: formatPath([...run.path, ...key]), message: message() });
}

/** Whether the run takes more problems: one more than the keys that are named, for the number of the others. */
function explains({ problems }: Run): boolean {
  return problems !== undefined && problems.length <= MAX_NAMED;
}

function spend({ steps }: Run, count: number): void {
  steps.left -= count;
  if (steps.left < 0) throw new TooManySteps();
}
