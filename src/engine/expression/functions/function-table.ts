/** The type of the functions of the expression language, built-in functions and functions of a host. */

import type { Json } from '../../base/json/json.ts';
import type { AnySchema } from '../../operation/standard-schema.port.ts';
import type { Evaluation } from '../evaluation.ts';

/** One function. The number of its arguments is checked when an expression is compiled. */
export interface ExpressionFunction {
  readonly minArgs: number;
  readonly maxArgs: number;
  /** Returns a different value at each call, like `random`, `now` and `uuid`. Default false. */
  readonly impure?: boolean;
  /** The JSON Schema or Standard Schema of what it returns, for the types of expressions. Undefined: any value. The value is not checked. */
  readonly returns?: AnySchema | undefined;
  /**
   * Must be fast, synchronous and pure. An error that it throws fails the evaluation with `EXPRESSION_ERROR` and its message.
   * @param args - between `minArgs` and `maxArgs` values, not to be changed
   */
  call(args: readonly Json[], evaluation: Evaluation): Json;
}

/** Applies an arrow to an element of a list. It takes its cost from the budget. */
export type Apply = (item: Json, index: number) => Json;

/** A function of this library. */
export interface BuiltInFunction extends ExpressionFunction {
  /** Its second argument is an arrow. `call` gets the other arguments, and what applies the arrow. */
  readonly takesArrow?: boolean;
  call(args: readonly Json[], evaluation: Evaluation, apply?: Apply): Json;
  /** Its result must not be stored or shown. */
  readonly isSecret?: boolean;
  /** Its arguments are shown to people. */
  readonly showsArguments?: boolean;
  /** Its first argument is the name of a signal. A literal name is checked when the expression is compiled. */
  readonly namesSignal?: boolean;
  /** The message about an option that the host did not set. An expression that calls the function is refused with it. */
  readonly notConfigured?: string;
}

/** Functions by name; only own properties count. */
export type FunctionTable = Readonly<Record<string, ExpressionFunction>>;

/** A pure function with a number of arguments between `minArgs` and `maxArgs`. */
export function takes(minArgs: number, maxArgs: number, call: ExpressionFunction['call']): ExpressionFunction {
  return { minArgs, maxArgs, call };
}

/** Like {@link takes}, for a function that returns null when its first argument is null. `call` never sees that null. */
export function takesValue(minArgs: number, maxArgs: number, call: ExpressionFunction['call']): ExpressionFunction {
  return takes(minArgs, maxArgs, (args, evaluation) => (args[0] === null ? null : call(args, evaluation)));
}
