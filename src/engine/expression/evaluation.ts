/** The evaluation of an expression: its budget of operations, and its source of time, random numbers and ids. */

import type { Json } from '../base/json/json.ts';

/** What an evaluation can use. The engine passes an object with more members, and one object serves many evaluations. */
export interface Evaluation {
  /**
   * Operations left: one for each node, one for each element or character that is built, and less for one that is only read.
   * Below zero the evaluation ends with `EXPRESSION_ERROR`. The engine resets the budget before each step.
   */
  budget: number;
  /** The field that the data of a template lacks, and that was read since it was last cleared. */
  missing?: string | undefined;
  /** Called for a `{{ ... }}` that is null because of a missing field. It may throw. */
  refuseMissing?: ((field: string) => void) | undefined;
  /** In [0, 1). The engine derives it so that a replay gets the same numbers. */
  random(): number;
  /** Unix ms. */
  now(): number;
  uuid(): string;
}

/**
 * Evaluates a compiled expression.
 * @throws OrchestratorError with the code `EXPRESSION_ERROR`, or `INVALID_INPUT` by `required()`, never another
 */
export type Evaluate<E extends Evaluation = Evaluation> = (evaluation: E) => Json;
