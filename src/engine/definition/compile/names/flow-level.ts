/** The context in which a step is compiled: its place, the names that it can read, and the functions that compile inner lists. */

import type { CompiledList } from '../../../compiled/compiled-ensemble.ts';
import type { StepDefinition } from '../../../ensemble/ensemble.ts';
import type { Path } from '../../source/problem.ts';
import type { FieldCompiler } from '../config/compile-fields.ts';
import type { FlowContext } from '../resolve-agent.ts';
import type { Names } from './names.ts';

/** The place of a list of steps. */
export interface ListPlace {
  /** The path in the definition. */
  readonly path: Path;
  /** The key in a run. The keys of the steps are `${key}[i]`. */
  readonly key: string;
  readonly parent: CompiledList['parent'];
  /** Whether nothing runs after the last step of the list. */
  readonly last: boolean;
  /** The index of the first step, when the list is a part of a longer list; default 0. */
  readonly first?: number;
}

export interface StepPlace {
  readonly path: Path;
  readonly key: string;
  readonly last: boolean;
}

export interface Level {
  readonly names: Names;
  readonly fields: FieldCompiler;
  readonly context: FlowContext;
  /** Compiles a list at this level. */
  list(steps: readonly StepDefinition[], place: ListPlace, level: Level): CompiledList;
  /** Compiles a list that is a separate level. */
  nested(steps: readonly StepDefinition[], place: ListPlace, names: Names, context: FlowContext): CompiledList;
  /** This level with another view of its names. */
  withNames(view: Names): Level;
}
