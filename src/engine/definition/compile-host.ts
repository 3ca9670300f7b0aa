/** What the host hands to the compiling of definitions: operations, shared agents, variables, functions. */

import type { FunctionTable } from '../expression/functions/function-table.ts';
import type { AgentDefinition } from '../model/ensemble.ts';
import type { AnyOperation } from '../ports/operation.ts';

export interface CompileHost {
  readonly operations: ReadonlyMap<string, AnyOperation>;
  /** By name. */
  readonly sharedAgents: ReadonlyMap<string, AgentDefinition>;
  /** `env` and `secrets` together. */
  readonly env: Readonly<Record<string, string>>;
  readonly secretNames: ReadonlySet<string>;
  /** Built-in functions and the host's; undefined for the built-in ones alone. */
  readonly functions: FunctionTable | undefined;
  /** Languages only: operations, scripts and variables that the host lacks are not reported (used by editors and `validate`). */
  readonly lenient?: boolean;
}
