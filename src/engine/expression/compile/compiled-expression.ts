/** The types of the expression compiler: name resolvers and options go in, closures and references come out. */

import type { Evaluate, Evaluation } from '../evaluation.ts';
import type { FunctionTable } from '../functions/function-table.ts';
import type { ParsedExpressions } from '../syntax/parsed-expressions.ts';

/** One key of a path that is known at compile time. */
export type PathSegment = string | number;

/** How a name is read, or why it can't be read. */
export type NameResolution<E extends Evaluation> =
  | {
      readonly read: Evaluate<E>;
      /** The number of leading path segments that `read` covers. Member access on its result reads the rest. */
      readonly consumed: number;
      /** The secret that the name may hold, such as `env.API_KEY`. */
      readonly secret?: string | undefined;
      /** The name is valid, but probably not what the author meant: the reason. */
      readonly warning?: string;
    }
  | {
      readonly problem: string;
      readonly suggestion?: string;
      /** Nothing has this name. Otherwise the name exists, but can't be read in this way or at this place. */
      readonly isUnknown?: boolean;
    };

/** Resolves the names of expressions. */
export interface NameResolver<E extends Evaluation> {
  /** Declared names that contain a hyphen. At each place the longest matching name wins over a subtraction. */
  readonly hyphenated: readonly string[];
  /** Filled during the compilation: the syntax trees. */
  readonly parsed?: ParsedExpressions | undefined;
  /** Whether an unknown name is a field of data that is not known yet. */
  readonly readsData?: boolean;
  /**
   * Called once for each place where the name occurs, when the expression is compiled.
   * @param path - the static path right after the name: `a.output.x['y'][0]` gives `['output', 'x', 'y', 0]`. It ends before the first computed key
   */
  resolve(name: string, path: readonly PathSegment[]): NameResolution<E>;
  /** Why no step waits for a signal of this name; undefined when one waits, or when that is not known. */
  unknownSignal?(name: string): { readonly problem: string; readonly suggestion?: string | undefined } | undefined;
}

/** A name that an expression reads, or a call of a function that returns a secret, such as `signalUrl()`. */
export interface Reference {
  readonly name: string;
  readonly path: readonly PathSegment[];
  /** The secret that the name may hold. */
  readonly secret?: string | undefined;
  /** The function that has this reference in its arguments, when the function shows its arguments to people. */
  readonly shownBy?: string;
  /** The place of the reference, with its static path, in the compiled text. */
  readonly index: number;
  readonly length: number;
}

/** A part of an expression that is valid, but probably not what the author meant. */
export interface ExpressionWarning {
  readonly message: string;
  /** In the compiled text. */
  readonly index: number;
  readonly length: number;
  /** What was probably meant. */
  readonly suggestion?: string;
}

export interface CompileOptions<E extends Evaluation> {
  readonly names: NameResolver<E>;
  /** Default: the built-in functions. */
  readonly functions?: FunctionTable | undefined;
  /** Replaces the evaluation of each expression of a text. @param start - where the expression begins */
  readonly checkPart?:
    | ((
        text: string,
        start: number,
        part: Omit<CompiledExpression<E>, 'source'> & { readonly end: number },
      ) => Evaluate<E>)
    | undefined;
}

export interface CompiledExpression<E extends Evaluation = Evaluation> {
  /** The text as given. */
  readonly source: string;
  readonly evaluate: Evaluate<E>;
  /** In source order. */
  readonly references: readonly Reference[];
  readonly warnings: readonly ExpressionWarning[];
  /** The expression reads no names and calls no impure function: it always gives the same value, or always fails. */
  readonly constant: boolean;
}
