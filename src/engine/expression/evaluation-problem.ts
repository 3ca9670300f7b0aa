/** How an evaluation fails: a problem inside an expression becomes an `EXPRESSION_ERROR` with its place in the source. */

import { messageOf, OrchestratorError } from '../base/errors.ts';
import type { Json } from '../base/json/json.ts';
import type { Evaluation } from './evaluation.ts';

/** A problem whose place in the source is not known yet. It is thrown only inside an evaluation, and `failureAt` converts it. */
export class EvaluationProblem extends Error {}

/** The place of an expression in the text that it was compiled from. */
export interface Site {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const MAX_SHOWN_SOURCE = 80;

/**
 * Adds the place to a problem. An error of the library is returned unchanged.
 *
 * @param index - in the site's text
 * @param prefix - the part that failed, such as the name of a function; empty for none
 */
export function failureAt(site: Site, index: number, thrown: unknown, prefix = ''): OrchestratorError {
  if (thrown instanceof OrchestratorError) return thrown;
  const expression = site.text.slice(site.start, site.end);
  const shown = expression.trim();
  const source = shown.length > MAX_SHOWN_SOURCE ? `${shown.slice(0, MAX_SHOWN_SOURCE)}...` : shown;
  const at = index - site.start;
  const message = `${prefix}${messageOf(thrown)} (in the expression "${source}", column ${at + 1})`;
  return new OrchestratorError('EXPRESSION_ERROR', message, {
    details: { expression, index: at },
    cause: thrown instanceof EvaluationProblem ? undefined : thrown,
  });
}

/** Takes operations from the budget. @throws EvaluationProblem when not enough are left */
export function charge(evaluation: Evaluation, operations: number): void {
  evaluation.budget -= operations;
  if (evaluation.budget < 0) throw outOfBudget();
}

export function outOfBudget(): EvaluationProblem {
  return new EvaluationProblem('the budget of operations is used up; work on less data at once, or do it in a script');
}

/** How messages name the type of a value. A message never contains the value, which may be secret. */
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
