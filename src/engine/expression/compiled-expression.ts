/** What goes into compiling an expression and what comes out: names, references, closures. */

import type { Evaluate, Evaluation } from './evaluation.ts';
import type { FunctionTable } from './functions/function-table.ts';

/** One step of a path that is known before anything runs. */
export type PathSegment = string | number;

/** How a name is read, or why it can't be. */
export type NameResolution<E extends Evaluation> =
  | {
      readonly read: Evaluate<E>;
      /** How many leading path segments `read` already covers; the rest is read by member access on what it gives. */
      readonly consumed: number;
      /** The secret that it may hold, such as `env.API_KEY`. */
      readonly secret?: string | undefined;
      /** Right, and hardly what was meant: why. */
      readonly warning?: string;
    }
  | { readonly problem: string; readonly suggestion?: string };

/** Answers what a name means. */
export interface NameResolver<E extends Evaluation> {
  /** Declared names that contain a hyphen; at each place the longest one wins over subtraction. */
  readonly hyphenated: readonly string[];
  /**
   * Called once per place, when the expression is compiled.
   * @param path - the static path right behind the name: `a.output.x['y'][0]` gives `['output', 'x', 'y', 0]`; it stops at the first computed key
   */
  resolve(name: string, path: readonly PathSegment[]): NameResolution<E>;
  /** Why no signal of this name is ever heard; undefined when one is, or nobody knows. */
  unknownSignal?(name: string): { readonly problem: string; readonly suggestion?: string | undefined } | undefined;
}

/** A name that an expression reads, or a function that it calls and that gives a secret: `signalUrl()`. */
export interface Reference {
  readonly name: string;
  readonly path: readonly PathSegment[];
  /** The secret that the name may hold. */
  readonly secret?: string | undefined;
  /** The function whose arguments it stands in, when that shows them to people. */
  readonly shownBy?: string;
  /** Where it stands in the text that was compiled, with its static path. */
  readonly index: number;
  readonly length: number;
}

/** What is right in an expression, and hardly meant. */
export interface ExpressionWarning {
  readonly message: string;
  /** In the text that was compiled. */
  readonly index: number;
  readonly length: number;
  /** What was probably meant. */
  readonly suggestion?: string;
}

export interface CompileOptions<E extends Evaluation> {
  readonly names: NameResolver<E>;
  /** Default: the built-in functions alone. */
  readonly functions?: FunctionTable;
}

export interface CompiledExpression<E extends Evaluation = Evaluation> {
  /** The text as given. */
  readonly source: string;
  readonly evaluate: Evaluate<E>;
  /** In source order. */
  readonly references: readonly Reference[];
  readonly warnings: readonly ExpressionWarning[];
  /** It reads no name and calls nothing that differs from call to call: it always gives one value, or always fails. */
  readonly constant: boolean;
}
