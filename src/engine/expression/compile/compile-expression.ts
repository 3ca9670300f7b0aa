/** Compiles the source of an expression to a closure. Guards, texts and whole values all use this compiler. */

import type { Evaluate, Evaluation } from '../evaluation.ts';
import { failureAt, outOfBudget, type Site } from '../evaluation-problem.ts';
import { builtinFunctions } from '../functions/builtin-functions.ts';
import { type Opener, tokenize } from '../syntax/lexer.ts';
import { parseExpression } from '../syntax/parse-expression.ts';
import type { CompileContext } from './compile-context.ts';
import { compileNode } from './compile-node.ts';
import type { CompiledExpression, CompileOptions, ExpressionWarning, Reference } from './compiled-expression.ts';

export type { Evaluate, Evaluation } from '../evaluation.ts';
export type {
  CompiledExpression,
  CompileOptions,
  NameResolver,
  PathSegment,
  Reference,
} from './compiled-expression.ts';

/** One expression inside a text, with its end. */
export interface CompiledPart<E extends Evaluation> {
  readonly evaluate: Evaluate<E>;
  readonly references: readonly Reference[];
  readonly warnings: readonly ExpressionWarning[];
  readonly constant: boolean;
  /** The index of the closing bracket, or the end of the text. */
  readonly end: number;
}

/**
 * Compiles a bare expression, without `${}`.
 *
 * @throws ExpressionSyntaxError with the place in `source`
 */
export function compileExpression<E extends Evaluation>(
  source: string,
  options: CompileOptions<E>,
): CompiledExpression<E> {
  const { evaluate, references, warnings, constant } = compilePart(source, 0, '', options);
  return { source, evaluate, references, warnings, constant };
}

/**
 * Compiles the expression that begins at `start` of a text.
 *
 * @param opener - the bracket before the expression; without one, it is the rest of the text
 */
export function compilePart<E extends Evaluation>(
  text: string,
  start: number,
  opener: Opener,
  options: CompileOptions<E>,
): CompiledPart<E> {
  const tokens = tokenize({ text, start, opener, hyphenated: options.names.hyphenated });
  const end = tokens[tokens.length - 1]?.index ?? start;
  const { root, nodes } = parseExpression(tokens);
  options.names.parsed?.add(text, { start, end, root });
  const site: Site = { text, start, end };
  const context: CompileContext<E> = {
    site,
    names: options.names,
    functions: options.functions ?? builtinFunctions,
    references: [],
    warnings: [],
    locals: new Map(),
    impure: false,
  };
  const run = compileNode(root, context);
  const evaluate: Evaluate<E> = (evaluation) => {
    // Each node runs at most once, apart from those of arrows. Arrows and functions charge the budget for their own work.
    evaluation.budget -= nodes;
    if (evaluation.budget < 0) throw failureAt(site, start, outOfBudget());
    return run(evaluation);
  };
  const { references, warnings, impure } = context;
  return { evaluate, references, warnings, constant: references.length === 0 && !impure, end };
}
