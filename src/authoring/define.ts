/** Identity helpers that add types to definitions in TypeScript, and the types that are derived from these definitions. */

import type { JsonObject } from '../engine/base/json/json.ts';
import type { Expression } from '../engine/base/time/duration.ts';
import type { AgentDefinition, EnsembleDefinition, InputField } from '../engine/ensemble/ensemble.ts';
import type { Operation } from '../engine/operation/operation.port.ts';
import type { InputOf as InputOfSchema, OutputOf, StandardSchema } from '../engine/operation/standard-schema.port.ts';
import type { Script } from '../operations/code/script.ts';
import type { AgentDraft, EnsembleDraft, OperationName } from './draft.ts';

/** An element of the option `agents`: an object, or a result of {@link defineAgent}. */
export type AgentSource = AgentDefinition | AgentDraft;

/** An element of the option `ensembles`: YAML text, an object of the same shape, or a result of {@link defineEnsemble}. */
export type EnsembleSource = string | EnsembleDraft | { readonly name: string; readonly [key: string]: unknown };

type Inputs = EnsembleDefinition['inputs'];

type Untyped<Script extends string, Signal extends string> = Omit<
  EnsembleDraft<Script, Signal>,
  'name' | 'inputs' | 'inputSchema' | 'outputSchema'
>;

/** Refuses unknown keys of declared input fields, which a type parameter does not. A JSON Schema may have any. */
type OnlyFieldKeys<I> = I extends { readonly type: string }
  ? unknown
  : { readonly [F in keyof I]: { readonly [K in Exclude<keyof I[F], keyof InputField>]: never } };

/** The key of the names that a definition uses. It exists in types only. */
declare const USES: unique symbol;

interface Uses<Script extends string, Signal extends string> {
  readonly [USES]?: { readonly script: Script; readonly signal: Signal };
}

/** A definition with the types of its name, its input and its output, and the names of its scripts and signals. */
export interface DefinedEnsemble<N extends string, I, Input, Output, Script extends string, Signal extends string>
  extends Untyped<Script, Signal>,
    Uses<Script, Signal> {
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
  Script extends string = never,
  Signal extends string = never,
>(
  definition: Untyped<Script, Signal> & {
    readonly name: N;
    readonly inputs?: (I & OnlyFieldKeys<I>) | undefined;
    readonly inputSchema?: Input | undefined;
    readonly outputSchema?: Output | undefined;
  },
): DefinedEnsemble<N, I, Input, Output, NoInfer<Script>, NoInfer<Signal>> {
  return definition as DefinedEnsemble<N, I, Input, Output, Script, Signal>;
}

/** An agent with the types of its name and of its scripts. */
export type DefinedAgent<N extends string, Script extends string> = AgentDraft<Script> & {
  readonly name: N;
} & Uses<Script, never>;

/**
 * Returns the definition of a shared agent unchanged, with its type. The config is that of its operation; an operation of your own has the
 * config of its schema.
 *
 * @example
 * ```ts
 * import { createOrchestrator, defineAgent, defineOperation } from 'ensemble-orchestrator';
 * import * as z from 'zod';
 *
 * const shout = defineOperation({
 *   name: 'shout',
 *   config: z.strictObject({ text: z.string() }),
 *   run: ({ config }) => config.text.toUpperCase(),
 * });
 * const loud = defineAgent({ name: 'loud', operation: shout.name, config: { text: '${input.text}' } });
 * const orchestrator = createOrchestrator({ operations: [shout], agents: [loud] });
 * console.log((await orchestrator.executeAgent('loud', { text: 'hey' })).output); // HEY
 * ```
 */
export function defineAgent<const N extends string, Script extends string = never, Config = never>(
  definition: { readonly name: N } & AgentDraft<Script, Config>,
): DefinedAgent<N, NoInfer<Script>> {
  return definition as DefinedAgent<N, Script>;
}

/**
 * Returns an operation unchanged. Its `config` schema types `context.config`, and its `name` in a definition has the type of that config.
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
export function defineOperation<Config = JsonObject, Given = Config>(
  operation: Operation<Config> & { readonly config?: StandardSchema<Given, Config> | undefined },
): Operation<Config> & { readonly name: OperationName<Given> } {
  return operation as Operation<Config> & { readonly name: OperationName<Given> };
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
            readonly [K in Exclude<keyof I, RequiredKeys<I>>]?: ValueOf<I[K]> | undefined;
          }
        : Readonly<Record<string, unknown>>
    : Readonly<Record<string, unknown>>;

/** The type of an ensemble's outputs, from its `outputSchema`. Without one: unknown. */
export type OutputsOf<D> = D extends { readonly outputSchema: infer S } ? OutputOf<S> : unknown;

type UsesOf<D> = D extends { readonly [USES]?: infer U } ? NonNullable<U> : never;
type ScriptIn<U> = U extends { readonly script: infer S extends string } ? (string extends S ? never : S) : never;
// A name that comes from an expression is not known.
type SignalIn<U> = U extends { readonly signal: infer S extends string } ? (S extends Expression ? string : S) : string;
type ScriptsOf<D> = ScriptIn<UsesOf<D>>;
type SignalsOf<D> = [UsesOf<D>] extends [never] ? string : SignalIn<UsesOf<D>>;

/** Requires the scripts that definitions name. Definitions that are not made by `defineEnsemble` and `defineAgent` name none. */
type ScriptsFor<D, Scripts> = string extends keyof Scripts
  ? unknown
  : [ScriptsOf<D>] extends [never]
    ? unknown
    : { readonly scripts: { readonly [Name in ScriptsOf<D>]: Script } };

/** Options of which the agents and the scripts are typed too. */
export type TypedOptions<
  Options,
  E extends readonly EnsembleSource[],
  A extends readonly AgentSource[],
  S extends Readonly<Record<string, Script>>,
> = Options & { readonly agents?: A | undefined; readonly scripts?: S | undefined } & ScriptsFor<
    E[number] | A[number],
    S
  >;

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
  readonly [D in E[number] as LiteralName<D>]: {
    readonly input: InputOf<D>;
    readonly output: OutputsOf<D>;
    readonly signal: SignalsOf<D>;
  };
} & ([E[number]] extends [never] ? OtherNames : true extends HasOtherName<E[number]> ? OtherNames : unknown);
