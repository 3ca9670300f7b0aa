/** What is known about the values of an ensemble, for people: the type of each input, step and output, and what to declare. */

import type { Json } from '../../base/json/json.ts';
import { valueAt } from '../../base/json/value-at.ts';
import type { AgentBehaviour, EnsembleDefinition, StepDefinition } from '../../ensemble/ensemble.ts';
import { isJsonSchema } from '../forms/forms.ts';
import type { Problem } from '../source/problem.ts';
import type { Type } from './type.ts';
import { typeText, unknownParts } from './type-text.ts';
import type { EnsembleTypes } from './walk/walker.ts';

/** The types of an ensemble as text. */
export interface TypeReport {
  readonly inputs: string;
  /** The output of each named step, in the order of the flow. */
  readonly steps: readonly { readonly name: string; readonly type: string }[];
  readonly outputs: readonly { readonly name: string; readonly type: string }[];
  /** What may be anything, and how to declare it. */
  readonly unknown: readonly Problem[];
}

/** @param behaviourOf - the agent of a step, by its name */
export function reportTypes(
  { inputs, outputs, answers }: EnsembleTypes,
  definition: EnsembleDefinition,
  behaviourOf: (agent: string) => AgentBehaviour | undefined,
): TypeReport {
  const steps = answers.map(({ name, output }) => ({ name, type: typeText(output) }));
  const unknown = answers.flatMap(({ name, path, output }): Problem[] => {
    const step = valueAt(definition as unknown as Json, path as string[]) as unknown as StepDefinition;
    const parts = unknownParts(output);
    const advice = adviceFor(step, parts, behaviourOf);
    return advice === undefined || parts.length === 0
      ? []
      : [{ path, message: sentence(`${name}.output`, parts, advice) }];
  });
  return {
    inputs: typeText(inputs),
    steps,
    outputs:
      outputs.kind === 'record' ? [...outputs.fields].map(([name, { type }]) => ({ name, type: typeText(type) })) : [],
    unknown: [...unknownInputs(inputs, definition), ...unknown],
  };
}

function unknownInputs(inputs: Type, definition: EnsembleDefinition): Problem[] {
  const parts = unknownParts(inputs);
  if (parts.length === 0) return [];
  const advice =
    definition.inputs === undefined
      ? 'declare `inputs`'
      : isJsonSchema(definition.inputs)
        ? 'say more in the JSON Schema'
        : 'write `inputs` as a JSON Schema, with `type: object` and `properties`';
  return [{ path: ['inputs'], message: sentence('input', parts, advice) }];
}

function sentence(what: string, parts: readonly string[], advice: string): string {
  const names = parts.map((part) => `\`${what}${part}\``);
  return `${names.join(', ')} may be anything: ${advice}`;
}

/** How to declare what a step gives; undefined for a step whose result comes from the steps inside it. */
function adviceFor(
  step: StepDefinition,
  parts: readonly string[],
  behaviourOf: (agent: string) => AgentBehaviour | undefined,
): string | undefined {
  if ('ensemble' in step) return 'the outputs of that ensemble are not known here';
  if (!('agent' in step)) return undefined;
  const { operation, output } = step.operation === undefined ? (behaviourOf(step.agent) ?? {}) : step;
  if (operation === undefined) return undefined;
  if (output !== undefined) return 'say more in `output` of the agent';
  if (operation === 'code') return 'declare it with `defineScript({ output, run })`, or with `output` of the agent';
  if (operation === 'api' && parts.every((part) => part.startsWith('.body')))
    return 'declare it with `response` in `config`';
  if (operation === 'think') return 'declare it with `schema` in `config`';
  return 'declare it with `output` of the agent';
}
