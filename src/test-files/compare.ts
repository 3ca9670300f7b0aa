/** Compares what happened with what a test expects: in part, by a schema, or by an expression. */

import { messageOf } from '../engine/base/errors.ts';
import { isMap } from '../engine/base/json/is-map.ts';
import { equalJson, formatPath, type Json, type JsonObject } from '../engine/base/json/json.ts';
import { compileText } from '../engine/expression/compile/compile-text.ts';
import type { CompileOptions, NameResolver } from '../engine/expression/compile/compiled-expression.ts';
import type { Evaluation } from '../engine/expression/evaluation.ts';
import type { FunctionTable } from '../engine/expression/functions/function-table.ts';
import { describeProblems } from '../engine/json-schema/check-by-schema.ts';
import { compileJsonSchema } from '../engine/json-schema/compile-json-schema.ts';

/** Where an execution differs from what was expected. */
export interface TestDifference {
  /** Such as `output.lines[0].cents`. */
  readonly path: string;
  /** Both as JSON or words, for people. */
  readonly expected: string;
  readonly was: string;
}

/** What expressions of `expect` read. */
export interface ExpectScope {
  readonly input: Json;
  readonly output: Json;
  readonly error: Json;
  /** The agents that ran, by name. */
  readonly steps: JsonObject;
  readonly functions: FunctionTable | undefined;
  now(): number;
}

type Path = readonly (string | number)[];

export const EXPECT_NAMES = ['value', 'input', 'output', 'error', 'steps'] as const;

interface ExpectEvaluation extends Evaluation {
  readonly data: Readonly<Record<string, Json>>;
}

/** How the texts of `expect` are compiled. */
export function expectOptions(functions: FunctionTable | undefined): CompileOptions<ExpectEvaluation> {
  const names: NameResolver<ExpectEvaluation> = {
    hyphenated: [],
    resolve(name) {
      if (!(EXPECT_NAMES as readonly string[]).includes(name))
        return { problem: `\`expect\` reads ${EXPECT_NAMES.map((one) => `\`${one}\``).join(', ')}`, isUnknown: true };
      return { read: ({ data }) => data[name] as Json, consumed: 0 };
    },
  };
  return { names, functions };
}

/** @returns every place where `actual` lacks what is expected. Keys that are not expected may have any value */
export function compare(expected: Json, actual: Json, path: Path, scope: ExpectScope): TestDifference[] {
  if (typeof expected === 'string' && expected.includes('${')) return compareText(expected, actual, path, scope);
  if (Array.isArray(expected)) return compareList(expected as readonly Json[], actual, path, scope);
  if (!isMap(expected)) return equalJson(expected, actual) ? [] : [differs(path, show(expected), actual)];
  if (isSchema(expected)) {
    const checked = compileJsonSchema(expected.schema as JsonObject, 'the schema')(actual);
    if ('value' in checked) return [];
    return [differs(path, `a value that fits the schema: ${describeProblems(checked.problems)}`, actual)];
  }
  if (!isMap(actual)) return [differs(path, show(expected), actual)];
  return Object.entries(expected).flatMap(([key, inner]) =>
    compare(inner, Object.hasOwn(actual, key) ? (actual[key] as Json) : null, [...path, key], scope),
  );
}

/** Whether an expected value is a JSON Schema that the real one fits. */
export function isSchema(value: JsonObject): boolean {
  return isMap(value.schema) && Object.keys(value).length === 1;
}

function compareList(expected: readonly Json[], actual: Json, path: Path, scope: ExpectScope): TestDifference[] {
  if (!Array.isArray(actual)) return [differs(path, show(expected), actual)];
  const list = actual as readonly Json[];
  const inner = expected
    .slice(0, list.length)
    .flatMap((item, i) => compare(item, list[i] as Json, [...path, i], scope));
  if (expected.length === list.length) return inner;
  return [
    ...inner,
    { path: `${formatPath(path)}.length`, expected: String(expected.length), was: String(list.length) },
  ];
}

/** An expression that reads `value` must be true. Any other gives the value that is expected. */
function compareText(text: string, actual: Json, path: Path, scope: ExpectScope): TestDifference[] {
  const compiled = compileText(text, expectOptions(scope.functions));
  const { input, output, error, steps, now } = scope;
  let found: Json;
  try {
    found = compiled.evaluate({
      budget: 100_000,
      random: () => 0,
      now,
      uuid: () => '',
      data: { value: actual, input, output, error, steps },
    });
  } catch (thrown) {
    return [differs(path, `${text} (${messageOf(thrown)})`, actual)];
  }
  if (compiled.references.some(({ name }) => name === 'value'))
    return found === true ? [] : [differs(path, text, actual)];
  return compare(withoutExpressions(found), actual, path, scope).map((one) => ({
    ...one,
    expected: `${one.expected}, by ${text}`,
  }));
}

// What an expression gives is data: a `${` in it is text.
function withoutExpressions(value: Json): Json {
  return typeof value === 'string' && value.includes('${') ? { schema: { const: value } } : value;
}

export function differs(path: Path, expected: string, was: Json): TestDifference {
  return { path: formatPath(path), expected, was: show(was) };
}

const MAX_SHOWN = 400;

export function show(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text;
}
