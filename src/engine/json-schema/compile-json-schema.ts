/** Compiles a JSON Schema to a check that reports every problem of a value and fills in the defaults of missing properties. */

import { isMap } from '../base/json/is-map.ts';
import { copyJson, equalJson, type Json, JsonError, type JsonObject } from '../base/json/json.ts';
import { suggestForMany } from '../base/suggest-name.ts';
import { quoted } from '../base/wording.ts';
import { CHARACTERS_A_STEP, hasType, LIMITS, typeMessage } from './json-limits.ts';
import { contains, items, unevaluatedItems, uniqueItems } from './list-keywords.ts';
import { dependencies, properties, propertyNames, requireListed, unevaluatedProperties } from './object-keywords.ts';
import {
  accept,
  addSeen,
  attempt,
  type Compiler,
  chain,
  explains,
  type Keyword,
  MAX_STEPS,
  newSeen,
  type Rule,
  type Run,
  refuse,
  reportProblem,
  spend,
  TooManySteps,
  typesOf,
  type ValueCheck,
  type ValueProblem,
} from './rule.ts';
import { SchemaIndex } from './schema-index.ts';

const TOO_LARGE = 'needs too many steps to be checked with the JSON Schema';

/**
 * @param root - a schema that `checkJsonSchema` accepts
 * @param what - what is checked, for messages
 */
export function compileJsonSchema(root: JsonObject, what = 'the input'): ValueCheck {
  const known = new Map<JsonObject, Rule>();
  const index = new SchemaIndex(root);
  const compiler: Compiler = {
    compile(schema) {
      if (!isMap(schema)) return schema === false ? refuse : accept;
      const rule = known.get(schema) ?? compileMap(schema, compiler);
      known.set(schema, rule);
      return rule;
    },
    target: (from) => index.find(from, from.$ref as string)?.schema ?? true,
    index,
  };
  const check = compiler.compile(root);
  return (input) => {
    const problems: ValueProblem[] = [];
    const steps = { left: MAX_STEPS };
    try {
      const value = check(input, {
        path: [],
        problems,
        hasFailed: false,
        steps,
        suggest: suggestForMany(),
        scope: [],
        what,
      });
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

function compileMap(schema: JsonObject, compiler: Compiler): Rule {
  const given = (table: object) => Object.keys(table).filter((keyword) => Object.hasOwn(schema, keyword));
  const limits = given(LIMITS).map((keyword) => LIMITS[keyword]?.(schema[keyword] as never, schema));
  const keywords = new Set(given(KEYWORDS).map((keyword) => KEYWORDS[keyword] as Keyword));
  const rules = [...keywords].map((keyword) => keyword(schema, compiler));
  const types = typesOf(schema);
  const check: Rule = (value, run) => {
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
  const asking = schema.unevaluatedProperties !== undefined || schema.unevaluatedItems !== undefined;
  const asked = asking ? askUnevaluated(check, schema, compiler) : check;
  return compiler.index.hasDynamicAnchors ? within(compiler.index.baseOf(schema), asked) : asked;
}

/** Notes which parts of the value the schema has checked, and then checks the others. */
function askUnevaluated(check: Rule, schema: JsonObject, compiler: Compiler): Rule {
  const rules = [
    ...(schema.unevaluatedProperties === undefined ? [] : [unevaluatedProperties(schema, compiler)]),
    ...(schema.unevaluatedItems === undefined ? [] : [unevaluatedItems(schema, compiler)]),
  ];
  return (value, run) => {
    const { seen: outer, hasFailed } = run;
    run.seen = newSeen();
    run.hasFailed = false;
    let out = check(value, run);
    // What a schema that fails has checked does not count, and its problems say enough.
    if (!run.hasFailed) out = applyAll(rules, out, run);
    addSeen(outer, run.seen);
    run.seen = outer;
    run.hasFailed ||= hasFailed;
    return out;
  };
}

/** Notes the resource of a schema on the way to the schemas inside it. */
function within(base: string, rule: Rule): Rule {
  return (value, run) => {
    if (run.scope.at(-1) === base) return rule(value, run);
    run.scope.push(base);
    const out = rule(value, run);
    run.scope.pop();
    return out;
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
  $dynamicRef: referDynamically,
  allOf,
  anyOf: choice('anyOf'),
  oneOf: choice('oneOf'),
  not,
  if: conditional,
};

// A schema may refer to itself, so the target is compiled at its first use.
function refer(schema: JsonObject, { compile, target }: Compiler): Rule {
  let rule: Rule | undefined;
  return (value, run) => {
    rule ??= compile(target(schema));
    return rule(value, run);
  };
}

function referDynamically(schema: JsonObject, { compile, index }: Compiler): Rule {
  const ref = schema.$dynamicRef as string;
  return (value, run) => compile(index.findDynamic(schema, ref, run.scope)?.schema ?? true)(value, run);
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
        const { hasFailed, out, seen } = attempt(rule, value, run);
        if (!hasFailed) fitting.push(out);
        if (!hasFailed) addSeen(run.seen, seen);
        if (fitting.length > 0 && keyword === 'anyOf' && !run.seen) break;
      }
      if (fitting.length === 1 || (fitting.length > 0 && keyword === 'anyOf')) return fitting[0] as Json;
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
    const tested = attempt(test as Rule, value, run);
    if (!tested.hasFailed) addSeen(run.seen, tested.seen);
    return ((tested.hasFailed ? otherwise : then) as Rule)(value, run);
  };
}
