/** The type of a step's result at a place of the flow. */

import type { Node } from '../../../expression/syntax/ast.ts';
import { COMPLETED, FAILED, type Place, type StepResult } from '../place.ts';
import { ANY, BOOLEAN, literal, NULL, nullByAccident, recordOf, required, STRING, type Type, union } from '../type.ts';
import type { InferContext } from './infer-context.ts';

export const ERROR: Type = recordOf([
  ['code', required(STRING)],
  ['message', required(STRING)],
  ['agent', { type: union([STRING, NULL]), optional: true }],
  ['details', { type: ANY, optional: true }],
]);

/** The members of a result. */
export const RESULT_MEMBERS = ['output', 'failed', 'success', 'executed', 'error'] as const;

export function resultType(step: string, result: StepResult, place: Place): Type {
  return recordOf(
    RESULT_MEMBERS.map((member) => [member, required(resultMember(member, step, result, place))] as const),
  );
}

export function memberOfResult(
  { step, result }: { step: string; result: StepResult },
  key: string | number | Node | undefined,
  { place }: InferContext,
): Type | undefined {
  const member = RESULT_MEMBERS.find((one) => one === key);
  return member && resultMember(member, step, result, place);
}

const YES = literal(true);

const NO = literal(false);

function resultMember(
  member: (typeof RESULT_MEMBERS)[number],
  step: string,
  { output, keepsOutput, why }: StepResult,
  place: Place,
): Type {
  const status = place.status(step);
  const ran = (status & COMPLETED) !== 0 || (keepsOutput && (status & FAILED) !== 0);
  const missed = (status & ~COMPLETED) !== 0;
  switch (member) {
    case 'output': {
      if (ran && !missed) return output;
      const none = nullByAccident((status & FAILED) !== 0 ? why.replace('may be skipped', 'may have failed') : why);
      return ran ? union([output, none]) : none;
    }
    case 'executed':
      return BOOLEAN;
    case 'success':
      return missed ? ((status & COMPLETED) !== 0 ? BOOLEAN : NO) : YES;
    case 'failed':
      return (status & FAILED) === 0 ? NO : BOOLEAN;
    case 'error':
      return (status & FAILED) === 0 ? NULL : union([ERROR, NULL]);
  }
}
