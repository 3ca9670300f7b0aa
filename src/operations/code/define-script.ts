/** Scripts with schemas: what they take is checked before they run, and what they return afterwards. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { formatPath } from '../../engine/base/json/json.ts';
import { andThen, type MaybePromise } from '../../engine/base/maybe-promise.ts';
import { shortList } from '../../engine/base/read-shape.ts';
import {
  type InputOf,
  issuePath,
  type OutputOf,
  type StandardResult,
  type StandardSchema,
} from '../../engine/operation/standard-schema.port.ts';
import type { Script, ScriptContext } from './script.ts';

/** A script with the schemas of its input and of its output. */
export type DefinedScript = Script & {
  readonly input?: StandardSchema<unknown, unknown> | undefined;
  readonly output?: StandardSchema<unknown, unknown> | undefined;
};

/** What a script with the input schema `S` receives as `input`. */
// biome-ignore lint/suspicious/noExplicitAny: without a schema, the definition alone has the shape
export type InputOfScript<S> = S extends StandardSchema<any, any> ? OutputOf<S> : any;
/** What a script with the output schema `S` may return. */
// biome-ignore lint/suspicious/noExplicitAny: any schema
export type ResultOfScript<S> = S extends StandardSchema<any, any> ? InputOf<S> : unknown;

/**
 * Gives a script the schemas of its input and of its output: any Standard Schemas (zod, valibot, arktype, ...). The result is a script for
 * the option `scripts`, or the default export of a file in `scripts/`.
 *
 * - An input that does not fit fails the attempt with `INVALID_INPUT`. The script gets what the schema returns.
 * - A result that does not fit fails the attempt with `INVALID_OUTPUT`. What the schema returns is the output of the agent.
 * - When a definition is loaded, the fields that it gives the script and reads of its output are checked, if the library of the schema
 *   gives its JSON Schema.
 *
 * The agent makes these checks: a test that calls the script itself makes none.
 *
 * @throws TypeError for a schema that is not a Standard Schema, and if `run` is not a function
 * @example
 * ```ts
 * import { createOrchestrator, defineScript } from 'ensemble-orchestrator';
 * import * as z from 'zod';
 *
 * const total = defineScript({
 *   input: z.object({ cents: z.array(z.number()) }),
 *   output: z.object({ sum: z.number() }),
 *   run: ({ input }) => ({ sum: input.cents.reduce((sum, one) => sum + one, 0) }),
 * });
 * const orchestrator = createOrchestrator({
 *   scripts: { total },
 *   ensembles: ['name: bill\nflow:\n  - { agent: t, operation: code, config: { script: total } }\noutputs: { sum: "${t.output.sum}" }'],
 * });
 * console.log((await orchestrator.execute('bill', { cents: [5, 7] })).output); // { sum: 12 }
 * ```
 */
export function defineScript<
  Input extends StandardSchema<unknown, unknown> | undefined = undefined,
  Output extends StandardSchema<unknown, unknown> | undefined = undefined,
>(script: {
  readonly input?: Input;
  readonly output?: Output;
  run(context: ScriptContext<InputOfScript<Input>>): MaybePromise<ResultOfScript<Output>>;
}): DefinedScript {
  const { input, output, run } = script;
  for (const [name, schema] of Object.entries({ input, output })) {
    if (schema === undefined || typeof schema['~standard']?.validate === 'function') continue;
    throw new TypeError(`defineScript: \`${name}\` must be a Standard Schema, such as one of zod`);
  }
  if (typeof run !== 'function') throw new TypeError('defineScript: `run` must be a function (context) => output');
  return Object.assign((context: ScriptContext) => run(context), { input, output });
}

/**
 * Runs a script. If it has schemas, they check what it takes and returns.
 *
 * @param withInput - the context with what the schema of the input returned
 * @throws INVALID_INPUT; INVALID_OUTPUT; what the script throws
 */
export function runScript(
  script: DefinedScript,
  context: ScriptContext,
  withInput: (input: unknown) => ScriptContext,
): unknown {
  const { input, output } = script;
  if (!input && !output) return script(context);
  const given = input ? andThen(checked(input, context.input, INPUT), withInput) : context;
  const result = andThen<ScriptContext, unknown>(given, script);
  return output ? andThen(result, (value) => checked(output, value, OUTPUT)) : result;
}

const INPUT = { code: 'INVALID_INPUT', message: 'the input does not fit the schema of the script' } as const;
const OUTPUT = { code: 'INVALID_OUTPUT', message: 'what the script returned does not fit its schema' } as const;

function checked(
  schema: StandardSchema<unknown, unknown>,
  value: unknown,
  { code, message }: typeof INPUT | typeof OUTPUT,
): MaybePromise<unknown> {
  return andThen(schema['~standard'].validate(value), (result: StandardResult<unknown>) => {
    if (!result.issues) return result.value;
    const issues = result.issues.map((issue) => ({ path: formatPath(issuePath(issue)), message: issue.message }));
    const text = shortList(issues.map(({ path, message: wrong }) => (path === '' ? wrong : `\`${path}\`: ${wrong}`)));
    throw new OrchestratorError(code, `${message}: ${text}`, { details: { issues } });
  });
}
