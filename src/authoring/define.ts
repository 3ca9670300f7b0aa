/** Identity helpers that add types to definitions in TypeScript, and the types that are derived from these definitions. */

import type { JsonObject } from '../engine/base/json.ts';
import type { AgentDefinition, EnsembleDefinition, InputField } from '../engine/model/ensemble.ts';
import type { Operation } from '../engine/ports/operation.ts';
import type { InputOf as InputOfSchema, OutputOf, StandardSchema } from '../engine/ports/standard-schema.ts';

/** An ensemble in TypeScript. */
export interface EnsembleDraft extends EnsembleDefinition {
  /**
   * Any Standard Schema (zod, valibot, arktype, ...). It checks the input of each execution, and gives it its type. The execution gets
   * what the schema returns, which must be JSON. An input that does not fit is refused with `INVALID_INPUT`, as with `inputs`.
   */
  readonly inputSchema?: StandardSchema | undefined;
  /**
   * Any Standard Schema (zod, valibot, arktype, ...). It checks the outputs when an execution ends, and gives them their type. An
   * execution whose outputs don't fit fails with `INVALID_OUTPUT`.
   */
  readonly outputSchema?: StandardSchema | undefined;
}

/** An element of the option `ensembles`: YAML text, an object of the same shape, or a result of {@link defineEnsemble}. */
export type EnsembleSource = string | EnsembleDraft | { readonly name: string; readonly [key: string]: unknown };

type Inputs = EnsembleDefinition['inputs'];

type Untyped = Omit<EnsembleDraft, 'name' | 'inputs' | 'inputSchema' | 'outputSchema'>;

/** Refuses unknown keys of declared input fields, which a type parameter does not. A JSON Schema may have any. */
type OnlyFieldKeys<I> = I extends { readonly type: string }
  ? unknown
  : { readonly [F in keyof I]: { readonly [K in Exclude<keyof I[F], keyof InputField>]: never } };

/** A definition with the types of its name, its input and its output. */
export interface DefinedEnsemble<N extends string, I, Input, Output> extends Untyped {
  readonly name: N;
  readonly inputs: I;
  readonly inputSchema: Input;
  readonly outputSchema: Output;
}

/**
 * Returns a definition unchanged, with its types: `inputs` or `inputSchema` types the input of `execute`, and `outputSchema` types the
 * output. An unknown key, also in a step, is a type error.
 *
 * @example
 * ```ts
 * import { createOrchestrator, defineEnsemble } from 'ensemble-orchestrator';
 *
 * const greet = defineEnsemble({
 *   name: 'greet',
 *   inputs: { who: { type: 'string', required: true } },
 *   flow: [{ agent: 'hello', operation: 'code', config: { script: 'hello' } }],
 *   outputs: { text: '${hello.output}' },
 * });
 * const orchestrator = createOrchestrator({
 *   ensembles: [greet],
 *   scripts: { hello: ({ input }) => `Hello ${input.who}` },
 * });
 * const run = await orchestrator.execute('greet', { who: 'Ada' });
 * console.log(run.output); // { text: 'Hello Ada' }
 * ```
 */
export function defineEnsemble<
  const N extends string,
  const I extends Inputs = undefined,
  Input extends StandardSchema | undefined = undefined,
  Output extends StandardSchema | undefined = undefined,
>(
  definition: Untyped & {
    readonly name: N;
    readonly inputs?: I & OnlyFieldKeys<I>;
    readonly inputSchema?: Input;
    readonly outputSchema?: Output;
  },
): DefinedEnsemble<N, I, Input, Output> {
  return definition as DefinedEnsemble<N, I, Input, Output>;
}

/** Returns the definition of a shared agent unchanged, with its type. */
export function defineAgent<const D extends AgentDefinition>(definition: D): D {
  return definition;
}

/**
 * Returns an operation unchanged. Its `config` schema types `context.config`.
 *
 * @example
 * ```ts
 * import { createOrchestrator, defineOperation } from 'ensemble-orchestrator';
 * import * as z from 'zod';
 *
 * const shout = defineOperation({
 *   name: 'shout',
 *   config: z.strictObject({ text: z.string() }),
 *   run: ({ config }) => config.text.toUpperCase(),
 * });
 * const orchestrator = createOrchestrator({
 *   operations: [shout],
 *   ensembles: ['name: loud\nflow:\n  - { agent: a, operation: shout, config: { text: "${input.text}" } }\noutputs: { text: "${a.output}" }'],
 * });
 * console.log((await orchestrator.execute('loud', { text: 'hey' })).output); // { text: 'HEY' }
 * ```
 */
export function defineOperation<Config = JsonObject>(operation: Operation<Config>): Operation<Config> {
  return operation;
}

type ValueOf<F extends InputField> = F extends { readonly enum: readonly (infer E)[] }
  ? E
  : F extends { readonly type: 'string' }
    ? string
    : F extends { readonly type: 'number' | 'integer' }
      ? number
      : F extends { readonly type: 'boolean' }
        ? boolean
        : F extends { readonly type: 'object' }
          ? Readonly<Record<string, unknown>>
          : F extends { readonly type: 'array' }
            ? readonly unknown[]
            : unknown;

type RequiredKeys<I> = { [K in keyof I]: I[K] extends { readonly required: true } ? K : never }[keyof I];

/** The type of an ensemble's input: what its `inputSchema` takes, or what its `inputs` declare. */
export type InputOf<D> = D extends { readonly inputSchema: infer S extends StandardSchema }
  ? InputOfSchema<S>
  : D extends { readonly inputs: infer I }
    ? I extends { readonly type: string }
      ? Readonly<Record<string, unknown>>
      : I extends Readonly<Record<string, InputField>>
        ? { readonly [K in RequiredKeys<I>]: ValueOf<I[K]> } & {
            readonly [K in Exclude<keyof I, RequiredKeys<I>>]?: ValueOf<I[K]>;
          }
        : Readonly<Record<string, unknown>>
    : Readonly<Record<string, unknown>>;

/** The type of an ensemble's outputs, from its `outputSchema`. Without one: unknown. */
export type OutputsOf<D> = D extends { readonly outputSchema: infer S } ? OutputOf<S> : unknown;

/** The key that stands for the names that TypeScript does not know, such as those of YAML texts. It exists in types only. */
declare const OTHER_NAMES: unique symbol;

/** Marks the types of ensembles of which not all names are known. */
export interface OtherNames {
  readonly [OTHER_NAMES]: true;
}

type LiteralName<D> = D extends { readonly name: infer N extends string } ? (string extends N ? never : N) : never;
type HasOtherName<D> = D extends unknown ? ([LiteralName<D>] extends [never] ? true : never) : never;

/**
 * The types of each ensemble by its name. If TypeScript knows all names, another name is a type error; otherwise the ensembles of the
 * other names have unknown types.
 */
export type EnsembleTypes<E extends readonly EnsembleSource[]> = {
  readonly [D in E[number] as LiteralName<D>]: { readonly input: InputOf<D>; readonly output: OutputsOf<D> };
} & ([E[number]] extends [never] ? OtherNames : true extends HasOtherName<E[number]> ? OtherNames : unknown);
