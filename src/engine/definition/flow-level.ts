/** Where a compiler of steps stands: the names that can be read there, and how it gets at the lists inside. */

import type { StepDefinition } from '../model/ensemble.ts';
import type { FieldCompiler } from './compile-fields.ts';
import type { CompiledList } from './compiled-ensemble.ts';
import type { Names } from './names.ts';
import type { Path } from './problem.ts';
import type { FlowContext } from './resolve-agent.ts';

/** Where a list of steps stands. */
export interface ListPlace {
  /** In the definition. */
  readonly path: Path;
  /** In the run: keys of its steps are `${key}[i]`. */
  readonly key: string;
  readonly parent: CompiledList['parent'];
  /** Nothing runs behind the list's last step. */
  readonly last: boolean;
  /** The place of its first step, where the list is a part of one; default 0. */
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
  /** Compiles a list that stands at this level. */
  list(steps: readonly StepDefinition[], place: ListPlace, level: Level): CompiledList;
  /** Compiles a list that is a level of its own. */
  inside(steps: readonly StepDefinition[], place: ListPlace, names: Names, context: FlowContext): CompiledList;
  /** This level, as a view of its names sees it. */
  as(view: Names): Level;
}
