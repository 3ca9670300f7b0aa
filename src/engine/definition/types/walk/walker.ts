/** What the walk over a definition holds, and how it reports. */

import type {
  AgentBehaviour,
  AgentDefinition,
  EnsembleDefinition,
  StepDefinition,
} from '../../../ensemble/ensemble.ts';
import type { FunctionTable } from '../../../expression/functions/function-table.ts';
import type { ParsedExpressions } from '../../../expression/syntax/parsed-expressions.ts';
import type { AnyOperation } from '../../../operation/operation.port.ts';
import type { StandardSchema } from '../../../operation/standard-schema.port.ts';
import type { Path, Problem } from '../../source/problem.ts';
import type { SchemaTypes } from '../from-json-schema.ts';
import { infer } from '../infer/infer.ts';
import type { InferContext } from '../infer/infer-context.ts';
import { COMPLETED, FAILED, type LevelTypes, NOT_RUN, type Place, SKIPPED } from '../place.ts';
import { ANY, type Type } from '../type.ts';

/** What other ensembles need to know of one. */
export interface EnsembleTypes {
  readonly inputs: Type;
  readonly outputs: Type;
  /** The inputs that an execution is refused without. */
  readonly needed: ReadonlySet<string>;
  /** What each named step gives, in the order of the flow. */
  readonly answers: readonly Answer[];
}

/** What a step gives. */
export interface Answer {
  readonly name: string;
  readonly path: Path;
  readonly output: Type;
}

/** What the app has. */
export interface TypeHost {
  readonly env: Readonly<Record<string, string>>;
  readonly functions: FunctionTable | undefined;
  readonly operations: ReadonlyMap<string, AnyOperation>;
  readonly sharedAgents: ReadonlyMap<string, AgentDefinition>;
}

export interface TypeCheck {
  readonly definition: EnsembleDefinition;
  readonly agents: ReadonlyMap<string, { readonly behaviour: AgentBehaviour; readonly path: Path }>;
  readonly host: TypeHost;
  /** Shared by the definitions that are loaded together. */
  readonly schemas: SchemaTypes;
  readonly parsed: ParsedExpressions;
  /** What checks the input in place of `inputs`: a schema in TypeScript. */
  readonly inputSchema?: StandardSchema<unknown, unknown> | undefined;
  readonly report: (problem: Problem) => void;
  /** The types of an ensemble that a step starts; undefined if they are not known. */
  readonly child: (name: string) => EnsembleTypes | undefined;
}

/** Nodes and statuses that the check of one definition may visit: about 30 ms. One expression may take a part of it. */
export const MAX_VISITS = 40_000;

const MAX_VISITS_AN_EXPRESSION = 4_000;

export const ALL = NOT_RUN | SKIPPED | COMPLETED | FAILED;

export interface Walker extends TypeCheck {
  readonly outermost: Record<string, Type>;
  /** The steps whose failure a condition reads, so that the flow may continue after it. */
  readonly handled: ReadonlySet<string>;
  /** What a function of the host returns. */
  readonly returnOf: (name: string) => Type;
  /** The payload of a signal, if its waits have a form. */
  readonly payloadOf: (signal: string) => Type | undefined;
  readonly answers: Answer[];
  levels: number;
  /** Infers a step. @returns its output, as a `foreach` and a `parallel` collect it */
  readonly walkStep: (step: StepDefinition, path: Path, level: LevelTypes, place: Place, walker: Walker) => Type;
  /** How many nodes may still be visited, for all expressions together. */
  fuel: number;
  lastFuel?: { readonly fuel: InferContext['fuel']; readonly given: number };
  /** Whether problems are not reported: the first of two walks over a loop. */
  quiet: boolean;
}

/** Where a value is: its level and place, and the path of the text. */
export interface At {
  readonly level: LevelTypes;
  readonly place: Place;
  readonly path: Path;
  readonly data?: Type | undefined;
  /** What `input` is here. Default: the input of the execution. */
  readonly input?: Type | undefined;
}

export function walkList(
  steps: readonly StepDefinition[],
  path: Path,
  level: LevelTypes,
  place: Place,
  walker: Walker,
): Type {
  let last: Type = ANY;
  steps.forEach((step, i) => {
    last = walker.walkStep(step, [...path, i], level, place, walker);
  });
  return last;
}

export function contextOf(text: string, at: At, walker: Walker): InferContext {
  return {
    level: at.level,
    place: at.place,
    text,
    outermost: at.input ? { ...walker.outermost, input: at.input } : walker.outermost,
    fuel: fuelFor(walker),
    infer,
    returnOf: walker.returnOf,
    payloadOf: walker.payloadOf,
    report: ({ index: offset, ...problem }) => report(walker, { path: at.path, offset, ...problem }),
  };
}

/** Fuel for one text. What is not used is given back when the next text begins. */
function fuelFor(walker: Walker): InferContext['fuel'] {
  const fuel = { left: Math.max(0, Math.min(walker.fuel, MAX_VISITS_AN_EXPRESSION)) };
  const given = fuel.left;
  const last = walker.lastFuel;
  if (last) walker.fuel -= last.given - Math.max(0, last.fuel.left);
  walker.lastFuel = { fuel, given };
  return fuel;
}

/** Reports a problem, unless the walk is the first of two over a loop. */
export function report(walker: Walker, problem: Problem): void {
  if (!walker.quiet) walker.report(problem);
}
