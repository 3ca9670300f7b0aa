/** What a function of the expression language is, and how a host adds its own. */

import type { Json } from '../../json.ts';
import type { Evaluation } from '../evaluation.ts';

/** One function; how many arguments it takes is checked when an expression is compiled. */
export interface ExpressionFunction {
  readonly minArgs: number;
  readonly maxArgs: number;
  /** Answers differently from call to call (`random`, `now`, `uuid`). Default false. */
  readonly impure?: boolean;
  /**
   * Must be quick, synchronous and pure. What it throws fails the evaluation with `EXPRESSION_ERROR` and the thrown message.
   * @param args - between `minArgs` and `maxArgs` values, not to be changed
   */
  call(args: readonly Json[], evaluation: Evaluation): Json;
}

/** A function of this library. */
export interface BuiltInFunction extends ExpressionFunction {
  /** What it gives may not be kept nor shown. */
  readonly isSecret?: boolean;
  /** What it is given is shown to people. */
  readonly showsArguments?: boolean;
  /** Its first argument is a signal's name, which is checked where it is written out. */
  readonly namesSignal?: boolean;
  /** The option that the host did not set: an expression that calls it is refused with this. */
  readonly notConfigured?: string;
}

/** Functions by name; only own properties count. */
export type FunctionTable = Readonly<Record<string, ExpressionFunction>>;

/** A pure function of so many arguments; one, when nothing is said. */
export function takes(minArgs: number, maxArgs: number, call: ExpressionFunction['call']): ExpressionFunction {
  return { minArgs, maxArgs, call };
}

/** The same for a function that gives null for null: its first argument, which `call` then never sees as null. */
export function takesValue(minArgs: number, maxArgs: number, call: ExpressionFunction['call']): ExpressionFunction {
  return takes(minArgs, maxArgs, (args, evaluation) => (args[0] === null ? null : call(args, evaluation)));
}
