/** The `code` operation: runs a script that the host registered by name. */

import * as z from 'zod/mini';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { isPromise } from '../../engine/base/maybe-promise.ts';
import { once } from '../../engine/base/once.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type {
  ExecutionInfo,
  Operation,
  OperationContext,
  StepTransaction,
} from '../../engine/operation/operation.port.ts';
import { isStandardSchema } from '../../engine/operation/standard-schema.port.ts';
import { type DefinedScript, runScript } from './define-script.ts';
import type { Script, ScriptContext } from './script.ts';

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
  const schemaOf = (script: unknown, side: 'input' | 'output') => {
    const schema = (byName.get(script as string) as DefinedScript | undefined)?.[side];
    return isStandardSchema(schema) ? schema : undefined;
  };
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
    input: ({ script }) => schemaOf(script, 'input'),
    output: ({ script }) => schemaOf(script, 'output'),
    needs: ({ script }) => (typeof script === 'string' ? [`script:${script}`] : []),
    run(context) {
      const { script } = context.config;
      const run = byName.get(script);
      if (!run) throw new OrchestratorError('NOT_CONFIGURED', `script \`${script}\` is not registered in this process`);
      try {
        const withInput = (input: unknown) => new CodeContext(context, { input });
        const output = runScript(run, new CodeContext(context), withInput);
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
  readonly #checked: { readonly input: unknown } | undefined;

  /** @param checked - in place of the input of the agent */
  constructor(context: OperationContext<CodeConfig>, checked?: { readonly input: unknown }) {
    this.#context = context;
    this.#checked = checked;
  }

  get input(): unknown {
    return (this.#checked ?? this.#context).input;
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

  get transaction(): StepTransaction {
    const { transaction } = this.#context;
    if (transaction) return transaction;
    const message =
      '`context.transaction` needs `postgresStorage`, and an ensemble whose results are stored step by step: not `durability: none`, and no dry run';
    throw new OrchestratorError('NOT_CONFIGURED', message);
  }
}
