/** The keywords of JSON Schema that look at the keys of an object. */

import type { Json, JsonObject } from '../base/json/json.ts';
import { MAX_NAMED } from '../base/suggest-name.ts';
import { quoted } from '../base/wording.ts';
import { CHARACTERS_A_STEP } from './json-limits.ts';
import {
  attempt,
  type Compiler,
  chain,
  checkPart,
  ofMap,
  type Rule,
  type Run,
  reportProblem,
  spend,
  type ValueProblem,
  withPart,
} from './rule.ts';

export function properties(schema: JsonObject, { compile, target }: Compiler): Rule {
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
  const seesAll = schema.additionalProperties !== undefined;
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
      if (fitting.length > 0) run.seen?.keys.add(key);
    }
    if (seesAll && run.seen) run.seen.all = true;
    reportUnknown(unknown, run);
    spend(run, defaults.length);
    for (const [key, fallback] of defaults) if (!Object.hasOwn(map, key)) out = withPart(map, out, key, fallback);
    return out;
  });
}

function reportUnknown(keys: readonly string[], run: Run): void {
  for (const key of keys.slice(0, MAX_NAMED))
    reportProblem(run, () => `${quoted(key)} is not a key of ${run.what}`, key);
  const more = keys.length - MAX_NAMED;
  if (more > 0) reportProblem(run, () => `has ${more} more keys that do not belong to ${run.what}`);
}

export function propertyNames(schema: JsonObject, { compile }: Compiler): Rule {
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

export function requireListed(schema: JsonObject): Rule {
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

export function dependencies(schema: JsonObject, { compile }: Compiler): Rule {
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

/** Checks the keys that no other keyword has checked, also in the schemas that this schema refers to. */
export function unevaluatedProperties(schema: JsonObject, { compile }: Compiler): Rule {
  const rule = compile(schema.unevaluatedProperties as Json);
  const isClosed = schema.unevaluatedProperties === false;
  return ofMap((map, run) => {
    const { seen } = run;
    if (!seen || seen.all) return map;
    let out = map;
    const keys = Object.keys(map).filter((key) => !seen.keys.has(key));
    spend(run, Object.keys(map).length);
    if (isClosed) reportUnknown(keys, run);
    else for (const key of keys) out = checkPart(map, out, key, rule, run);
    seen.all = true;
    return out;
  });
}
