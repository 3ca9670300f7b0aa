/** The state of the compilation of one expression. */

import type { Evaluate, Evaluation } from '../evaluation.ts';
import type { Site } from '../evaluation-problem.ts';
import type { FunctionTable } from '../functions/function-table.ts';
import type { ExpressionWarning, NameResolver, Reference } from './compiled-expression.ts';

export interface CompileContext<E extends Evaluation> {
  readonly site: Site;
  readonly names: NameResolver<E>;
  readonly functions: FunctionTable;
  /** Filled during the compilation, in source order. */
  readonly references: Reference[];
  readonly warnings: ExpressionWarning[];
  /** The parameters of the arrows around the part that is compiled now. */
  readonly locals: Map<string, Evaluate<E>>;
  /** Set to true by a call of a function whose result differs from call to call. */
  impure: boolean;
}
