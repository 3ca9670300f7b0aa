/** What an expression can read, and where the problems of its types go. */

import type { Node } from '../../../expression/syntax/ast.ts';
import type { LevelTypes, Place } from '../place.ts';
import type { Type } from '../type.ts';

/** A part of an expression that can't be right. */
export interface TypeProblem {
  readonly message: string;
  readonly index: number;
  readonly length: number;
  readonly suggestion?: string | undefined;
}

/** What an expression can read, and where its problems go. */
export interface InferContext {
  readonly level: LevelTypes;
  readonly place: Place;
  /** The types of `input`, `env` and so on. */
  readonly outermost: Readonly<Record<string, Type>>;
  /** The text that the expression is in: messages quote it, and equal conditions are found by it. */
  readonly text: string;
  /** The fields of the data of a template. */
  readonly data?: Type | undefined;
  /** How many nodes may still be visited, for this expression. After that, types are `any`, and conditions say nothing. */
  readonly fuel: { left: number };
  readonly report: (problem: TypeProblem) => void;
  /** What a function of the host returns. */
  readonly returnOf: (name: string) => Type;
  /** The payload of a signal, if its waits have a form. */
  readonly payloadOf: (signal: string) => Type | undefined;
  /** `infer`, for the modules that it uses itself. */
  readonly infer: (node: Node, context: InferContext) => Type;
}

/** Reports what can't be right, unless the place is never reached. */
export function impossible(
  context: InferContext,
  at: { index: number; end: number },
  message: string,
  suggestion?: string,
): void {
  if (context.place.dead) return;
  context.report({ message, index: at.index, length: at.end - at.index, suggestion });
}
