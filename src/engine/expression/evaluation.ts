/** What one evaluation may draw on, and how it pays for it: the part of the run that expressions see as they are evaluated. */

import type { Json } from '../json.ts';

/** What one evaluation may draw on. The engine passes its own richer object; one object serves many evaluations. */
export interface Evaluation {
  /**
   * Operations left: one for each node, one for each element or character that is built, less for what is only read.
   * Below zero the evaluation ends with `EXPRESSION_ERROR`. Whoever owns the object resets it before each step.
   */
  budget: number;
  /** In [0, 1), derived by the engine so that a resumed run draws the same. */
  random(): number;
  /** Unix ms. */
  now(): number;
  uuid(): string;
}

/**
 * A compiled expression at work.
 * @throws OrchestratorError `EXPRESSION_ERROR`, never another
 */
export type Evaluate<E extends Evaluation = Evaluation> = (evaluation: E) => Json;
