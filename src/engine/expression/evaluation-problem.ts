/** How an evaluation fails: a problem found anywhere below becomes `EXPRESSION_ERROR` at its place in the source. */

import { messageOf, OrchestratorError } from '../errors.ts';
import type { Json } from '../json.ts';
import type { Evaluation } from './evaluation.ts';

/** A problem whose place in the source is not known yet; it never leaves this folder. */
export class EvaluationProblem extends Error {}

/** Where an expression stands in the text it was compiled from. */
export interface Site {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const SHOWN_SOURCE = 80;

/**
 * Puts a problem at its place. An error that is the library's own already passes as it is.
 *
 * @param index - in the site's text
 * @param prefix - what failed, such as a function's name; empty for none
 */
export function failureAt(site: Site, index: number, thrown: unknown, prefix = ''): OrchestratorError {
  if (thrown instanceof OrchestratorError) return thrown;
  const expression = site.text.slice(site.start, site.end);
  const shown = expression.trim();
  const source = shown.length > SHOWN_SOURCE ? `${shown.slice(0, SHOWN_SOURCE)}...` : shown;
  const at = index - site.start;
  const message = `${prefix}${messageOf(thrown)} (in the expression "${source}", column ${at + 1})`;
  return new OrchestratorError('EXPRESSION_ERROR', message, {
    details: { expression, index: at },
    cause: thrown instanceof EvaluationProblem ? undefined : thrown,
  });
}

/** @throws EvaluationProblem when the operations left don't suffice */
export function charge(evaluation: Evaluation, operations: number): void {
  evaluation.budget -= operations;
  if (evaluation.budget < 0) throw outOfBudget();
}

export function outOfBudget(): EvaluationProblem {
  return new EvaluationProblem('the budget of operations is used up; work on less data at once, or do it in a script');
}

/** A value's type as messages name it; values themselves never enter a message, they may be secret. */
export function describeType(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  switch (typeof value) {
    case 'string':
      return 'text';
    case 'number':
      return 'a number';
    case 'boolean':
      return 'a boolean';
    default:
      return 'an object';
  }
}
