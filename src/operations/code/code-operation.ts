/** The `code` operation: runs a script that the host registered by name. */

import * as z from 'zod/mini';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { isPromise } from '../../engine/base/maybe-promise.ts';
import { once } from '../../engine/base/once.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { ExecutionInfo, Operation, OperationContext } from '../../engine/operation/operation.port.ts';

/** What a script receives. */
// biome-ignore lint/suspicious/noExplicitAny: the shape of an input is written in the definition, where TypeScript can't see it
export interface ScriptContext<Input = any> {
  /**
   * The agent's input, as a copy that the script may change. If the agent declares no `input`, it is the input of the execution, which is
   * frozen and shared by all steps that read it. Its type is `any` by default, because its shape is in the definition, where
   * TypeScript can't see it. `Script<MyInput>` sets the type.
   */
  readonly input: Input;
  /** The other keys of the agent's config, with expressions evaluated. */
  readonly config: JsonObject;
  /** `env` and `secrets`, as passed to `createOrchestrator`. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Aborts at the agent's timeout, and when the execution is cancelled or times out. If your listener throws, this is an uncaught
   * exception, which ends a Node.js process.
   */
  readonly signal: AbortSignal;
  /** Equal on every attempt of this step. Pass it to services that support idempotency keys. */
  readonly idempotencyKey: string;
  readonly logger: Logger;
  readonly execution: ExecutionInfo;
}

/**
 * A script. It returns the agent's output, or a promise of it. The output must be JSON. A script that throws fails the agent, and
 * everyone who may read the execution can read the message.
 *
 * An endless synchronous loop can't be stopped, because a script runs in the process of its host.
 */
// biome-ignore lint/suspicious/noExplicitAny: as for ScriptContext
export type Script<Input = any> = (context: ScriptContext<Input>) => unknown;

const codeConfig = once(() =>
  z.looseObject({
    script: z
      .string({ error: 'must be the name of a registered script' })
      .check(z.minLength(1, { error: 'must not be empty' })),
  }),
);

type CodeConfig = z.output<ReturnType<typeof codeConfig>>;

/** @param scripts - by name. Only own keys count */
export function codeOperation(scripts: Readonly<Record<string, Script>>): Operation<CodeConfig> {
  const byName = new Map(Object.entries(scripts));
  return {
    name: 'code',
    get config() {
      return codeConfig();
    },
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
      try {
        const output = run(new CodeContext(context));
        if (!isPromise(output)) return output;
        return output.then(undefined, (thrown: unknown) => {
          throw explain(thrown, context.input);
        });
      } catch (thrown) {
        throw explain(thrown, context.input);
      }
    },
  };
}

const FROZEN = /read[- ]only|not extensible|frozen|Cannot delete property|non-configurable/i;
const FROZEN_HINT =
  'the input of an agent without `input` is shared by all steps, and frozen: change a copy (`structuredClone(input)`), or give the agent `input: ${input}`';

/** Says what to do about the error of a script that changes its frozen input. */
function explain(thrown: unknown, input: Json): unknown {
  if (thrown instanceof TypeError && FROZEN.test(thrown.message) && Object.isFrozen(input))
    thrown.message += `; ${FROZEN_HINT}`;
  return thrown;
}

// Reads from the operation's context only what the script reads: creating signals and keys has a cost.
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
