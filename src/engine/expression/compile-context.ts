/** What the compilation of one expression shares. */

import type { ExpressionWarning, NameResolver, Reference } from './compiled-expression.ts';
import type { Evaluation } from './evaluation.ts';
import type { Site } from './evaluation-problem.ts';
import type { FunctionTable } from './functions/function-table.ts';

export interface CompileContext<E extends Evaluation> {
  readonly site: Site;
  readonly names: NameResolver<E>;
  readonly functions: FunctionTable;
  /** Filled on the way, in source order. */
  readonly references: Reference[];
  readonly warnings: ExpressionWarning[];
  /** Set as soon as something is called that differs from call to call. */
  impure: boolean;
}
