/** The `code` operation: runs a script that the host registered by name. */

import * as z from 'zod';
import { OrchestratorError } from '../engine/errors.ts';
import type { Json, JsonObject } from '../engine/json.ts';
import type { Logger } from '../engine/ports/logger.ts';
import type { ExecutionInfo, Operation, OperationContext } from '../engine/ports/operation.ts';
import { suggestName } from '../engine/suggest-name.ts';

/** What a script is handed. */
// biome-ignore lint/suspicious/noExplicitAny: the shape of an input is written in the definition, where TypeScript can't see it
export interface ScriptContext<Input = any> {
  /**
   * The agent's input, a copy of the script's own. It is `any` by default: its shape is written in the definition, where
   * TypeScript can't see it; `Script<MyInput>` types it.
   */
  readonly input: Input;
  /** The agent's further config keys, expressions evaluated. */
  readonly config: JsonObject;
  /** `env` and `secrets` as handed to `createOrchestrator`. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Aborts at the agent's timeout, and when the run is cancelled or out of time. A listener of yours that throws is an uncaught
   * exception, which ends a Node.js process.
   */
  readonly signal: AbortSignal;
  /** Equal on every retry of this step: hand it to services that take one. */
  readonly idempotencyKey: string;
  readonly logger: Logger;
  readonly execution: ExecutionInfo;
}

/**
 * A script: gives the agent's output (or a promise of it), which must be JSON. Throwing fails the agent, with the thrown message for
 * whoever may read the execution.
 *
 * An endless synchronous loop can't be stopped: a script shares the process with its host.
 */
// biome-ignore lint/suspicious/noExplicitAny: as for ScriptContext
export type Script<Input = any> = (context: ScriptContext<Input>) => unknown;

const config = z.looseObject({
  script: z.string({ error: 'must be the name of a registered script' }).min(1, { error: 'must not be empty' }),
});

type CodeConfig = z.output<typeof config>;

/** @param scripts - by name; own keys only */
export function codeOperation(scripts: Readonly<Record<string, Script>>): Operation<CodeConfig> {
  const byName = new Map(Object.entries(scripts));
  return {
    name: 'code',
    config,
    check({ script }) {
      if (typeof script !== 'string' || byName.has(script)) return [];
      if (script.includes('${'))
        return [
          {
            path: ['script'],
            message: 'must be a plain name: which script runs is decided when the definition is loaded',
          },
        ];
      const names = [...byName.keys()];
      const known = names.length === 0 ? 'none is registered' : `registered: ${names.slice(0, 10).join(', ')}`;
      const suggestion = suggestName(script, names);
      return [
        {
          path: ['script'],
          message: `there is no script \`${script}\` (${known})`,
          ...(suggestion === undefined ? {} : { suggestion }),
        },
      ];
    },
    needs: ({ script }) => (typeof script === 'string' ? [`script:${script}`] : []),
    run(context) {
      const { script } = context.config;
      const run = byName.get(script);
      if (!run) throw new OrchestratorError('NOT_CONFIGURED', `script \`${script}\` is not registered in this process`);
      return run(new CodeContext(context));
    },
  };
}

// Asks the operation's context only for what the script asks for: signals and keys cost something to make.
class CodeContext implements ScriptContext {
  readonly #context: OperationContext<CodeConfig>;

  constructor(context: OperationContext<CodeConfig>) {
    this.#context = context;
  }

  get input(): Json {
    return this.#context.input;
  }

  get config(): JsonObject {
    const { script: _script, ...rest } = this.#context.config;
    return rest as JsonObject;
  }

  get env(): Readonly<Record<string, string>> {
    return this.#context.env;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  get idempotencyKey(): string {
    return this.#context.idempotencyKey;
  }

  get logger(): Logger {
    return this.#context.logger;
  }

  get execution(): ExecutionInfo {
    return this.#context.execution;
  }
}
