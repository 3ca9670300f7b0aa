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

/** Functions by name; only own properties count. */
export type FunctionTable = Readonly<Record<string, ExpressionFunction>>;
