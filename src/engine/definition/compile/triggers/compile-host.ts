/** What the host provides to the compiler: operations, shared agents, variables and functions. */

import type { TemplateEngine } from '../../../component/template-engine.port.ts';
import type { AgentDefinition } from '../../../ensemble/ensemble.ts';
import type { FunctionTable } from '../../../expression/functions/function-table.ts';
import type { AnyOperation } from '../../../operation/operation.port.ts';

export interface CompileHost {
  readonly operations: ReadonlyMap<string, AnyOperation>;
  /** The shared agents by name. */
  readonly sharedAgents: ReadonlyMap<string, AgentDefinition>;
  /** `env` and `secrets` together. */
  readonly env: Readonly<Record<string, string>>;
  readonly secretNames: ReadonlySet<string>;
  /** The built-in functions and the functions of the host; undefined for the built-in functions only. */
  readonly functions: FunctionTable | undefined;
  /** The language of stored templates. Default: the library's own. */
  readonly templates?: TemplateEngine | undefined;
  /** The names of the mail senders of the host. Default: none. */
  readonly mailSenders?: readonly string[];
  /** Unix ms at which this process began to use its definitions. Absent: when a definition is used for the first time. */
  readonly readAt?: (() => number) | undefined;
  /** The numbers of slots of the shared limits. Default: there are none. */
  readonly sharedLimits?: ReadonlyMap<string, number> | undefined;
  /** Missing operations, scripts and variables are not reported. Editors and `validate` use this. */
  readonly lenient?: boolean;
  /** The problem of a variable that has no value. Default: it names the options of `createOrchestrator`. */
  readonly unknownVariable?: ((name: string) => string) | undefined;
}
