/** Identity helpers that add types to definitions written in TypeScript, and the types that flow from them. */

import type { AgentDefinition, EnsembleDefinition, InputField } from './engine/model/ensemble.ts';
import type { Operation } from './engine/ports/operation.ts';
import type { OutputOf, StandardSchema } from './engine/ports/standard-schema.ts';

/** An ensemble as TypeScript writes it. */
export interface EnsembleDraft extends EnsembleDefinition {
  /**
   * Any Standard Schema (zod, valibot, arktype, ...): the outputs are checked against it when a run ends, and have its type.
   * A run whose outputs don't fit fails with `INVALID_OUTPUT`.
   */
  readonly outputSchema?: StandardSchema;
}

/** What `ensembles` takes: YAML text, an object of the same shape, or what {@link defineEnsemble} gave. */
export type EnsembleSource = string | EnsembleDraft | { readonly name: string; readonly [key: string]: unknown };

/**
 * Gives a definition back as it is, typed: its `inputs` type the input of `execute`, its `outputSchema` the output.
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
export function defineEnsemble<const D extends EnsembleDraft>(definition: D): D {
  return definition;
}

/** Gives a shared agent's definition back as it is, typed. */
export function defineAgent<const D extends AgentDefinition>(definition: D): D {
  return definition;
}

/**
 * Gives an operation back as it is; its `config` schema types `context.config`.
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
export function defineOperation<Config>(operation: Operation<Config>): Operation<Config> {
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

/** The input that an ensemble takes. */
export type InputOf<D> = D extends { readonly inputs: infer I }
  ? I extends { readonly type: string }
    ? Readonly<Record<string, unknown>>
    : I extends Readonly<Record<string, InputField>>
      ? { readonly [K in RequiredKeys<I>]: ValueOf<I[K]> } & {
          readonly [K in Exclude<keyof I, RequiredKeys<I>>]?: ValueOf<I[K]>;
        }
      : Readonly<Record<string, unknown>>
  : Readonly<Record<string, unknown>>;

/** The outputs that an ensemble gives: typed by its `outputSchema`, unknown without one. */
export type OutputsOf<D> = D extends { readonly outputSchema: infer S } ? OutputOf<S> : unknown;

/** Ensemble name to its types, for those whose names TypeScript knows. */
export type EnsembleTypes<E extends readonly EnsembleSource[]> = {
  readonly [D in E[number] as D extends { readonly name: infer N extends string }
    ? string extends N
      ? never
      : N
    : never]: { readonly input: InputOf<D>; readonly output: OutputsOf<D> };
};
