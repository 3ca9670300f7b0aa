/** Compiles whole values, such as the config or input of an agent. Every text inside is compiled; an expression in a key is refused. */

import { type Json, type JsonObject, MAX_DEPTH } from '../../base/json/json.ts';
import type { Evaluate, Evaluation } from '../evaluation.ts';
import { ExpressionSyntaxError } from '../syntax/expression-syntax-error.ts';
import { type CompiledText, compileText } from './compile-text.ts';
import type { CompileOptions, ExpressionWarning, PathSegment, Reference } from './compiled-expression.ts';

export interface ValueReference extends Reference {
  /** The path of the text in the value. `index` and `length` count inside that text. */
  readonly at: readonly PathSegment[];
}

/** A warning, with the path of its text in the value. */
export interface ValueWarning extends ExpressionWarning {
  readonly at: readonly PathSegment[];
}

export interface CompiledValue<E extends Evaluation = Evaluation> {
  /** Builds a new value on every call, so that the receiver may change it. The value of a name is passed without a copy. */
  readonly evaluate: Evaluate<E>;
  readonly references: readonly ValueReference[];
  readonly warnings: readonly ValueWarning[];
  /** As in an expression; false for a value with a problem. */
  readonly constant: boolean;
}

/**
 * Compiles a value. It doesn't throw for a wrong text: it reports each problem with its place and continues.
 *
 * @param report - called once for each text with a problem
 * @param read - compiles the texts that are not read as everywhere; undefined for any other text
 */
export function compileValue<E extends Evaluation>(
  value: Json,
  options: CompileOptions<E>,
  report: (path: readonly PathSegment[], error: ExpressionSyntaxError) => void,
  read?: (path: readonly PathSegment[], text: string) => CompiledText<E> | undefined,
): CompiledValue<E> {
  const references: ValueReference[] = [];
  const warnings: ValueWarning[] = [];
  const path: PathSegment[] = [];
  let constant = true;

  const fail = (error: ExpressionSyntaxError): Evaluate<E> => {
    report([...path], error);
    constant = false;
    return () => null;
  };

  const compile = (part: Json): Evaluate<E> => {
    if (typeof part === 'string') return compileString(part);
    if (typeof part !== 'object' || part === null) return () => part;
    if (path.length >= MAX_DEPTH) {
      return fail(new ExpressionSyntaxError(`the value is nested deeper than ${MAX_DEPTH} levels`, 0, 0));
    }
    return Array.isArray(part) ? compileArray(part) : compileObject(part as JsonObject);
  };

  const compileInside = (key: PathSegment, part: Json): Evaluate<E> => {
    path.push(key);
    const evaluate = compile(part);
    path.pop();
    return evaluate;
  };

  const refuseKey = (key: string) => {
    path.push(key);
    fail(expressionInKey());
    path.pop();
  };

  const compileString = (text: string): Evaluate<E> => {
    try {
      const special = read?.(path, text);
      if (!special && !text.includes('${')) return () => text;
      const compiled = special ?? compileText(text, options);
      for (const reference of compiled.references) references.push({ ...reference, at: [...path] });
      for (const warning of compiled.warnings) warnings.push({ ...warning, at: [...path] });
      if (!compiled.constant) constant = false;
      return compiled.evaluate;
    } catch (error) {
      if (error instanceof ExpressionSyntaxError) return fail(error);
      throw error;
    }
  };

  const compileArray = (array: readonly Json[]): Evaluate<E> => {
    const items = array.map((item, index) => compileInside(index, item));
    return (evaluation) => {
      const out: Json[] = [];
      for (const item of items) out.push(item(evaluation));
      return out;
    };
  };

  const compileObject = (object: JsonObject): Evaluate<E> => {
    const keys = Object.keys(object);
    if (keys.includes('__proto__')) return fail(new ExpressionSyntaxError('the key __proto__ is never allowed', 0, 0));
    for (const key of keys) if (key.includes('${')) refuseKey(key);
    const values = keys.map((key) => compileInside(key, object[key] as Json));
    return (evaluation) => {
      const out: Record<string, Json> = {};
      for (let i = 0; i < keys.length; i++) out[keys[i] as string] = (values[i] as Evaluate<E>)(evaluation);
      return out;
    };
  };

  return { evaluate: compile(value), references, warnings, constant };
}

/** The refusal of a key with `${`, which would stay text. */
export function expressionInKey(): ExpressionSyntaxError {
  const error = new ExpressionSyntaxError(IN_KEY, 0, 0);
  error.inKey = true;
  return error;
}

const IN_KEY =
  "a key is not evaluated, so `${...}` in it would stay text: write the whole map as one expression, such as `${parseJson('{' + json(input.key) + ':' + json(input.value) + '}')}`, or build it in a script (`operation: code`)";
