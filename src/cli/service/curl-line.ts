/** A shell command that runs an ensemble of a service. */

import type { Json } from '../../engine/base/json/json.ts';
import type { EnsembleDefinition, InputField, InputType } from '../../engine/ensemble/ensemble.ts';

/** The variable with the token: a command with the token itself would stay in the shell's history. The other commands of `ensemble` read it too. */
export const TOKEN_VARIABLE = 'ENSEMBLE_TOKEN';

/** @param url - of the service */
export function curlLine(url: string, definition: EnsembleDefinition): string {
  const body = JSON.stringify({ input: sampleInput(definition.inputs) });
  const options = [
    `-H "Authorization: Bearer $${TOKEN_VARIABLE}"`,
    `-H ${quote('Content-Type: application/json')}`,
    `-d ${quote(body)}`,
  ];
  return `curl ${url}/api/v1/execute/ensemble/${definition.name} ${options.join(' ')}`;
}

const SAMPLES: Readonly<Record<InputType, Json>> = {
  string: 'text',
  number: 1,
  integer: 1,
  boolean: true,
  object: {},
  array: [],
  any: 'text',
};

/** A value for each required field. A JSON Schema gets no sample values. */
function sampleInput(inputs: EnsembleDefinition['inputs']): Json {
  const sample: Record<string, Json> = {};
  for (const [name, field] of Object.entries(inputs ?? {}) as [string, InputField][]) {
    if (typeof field !== 'object' || field === null || field.required !== true || field.default !== undefined) continue;
    sample[name] = field.enum?.[0] ?? SAMPLES[field.type ?? 'any'];
  }
  return sample;
}

/** Quotes a text for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
