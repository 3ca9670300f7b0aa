/** Reads a definition from a request's body: YAML, or JSON. */

import { OrchestratorError } from '../engine/base/errors.ts';
import type { HttpCall } from './call.ts';
import { DEFINITION_TYPES, decodeText, parseJson, readBody } from './read-json.ts';

/**
 * @returns the text of YAML, or the value of JSON
 * @throws as `readJson`; INVALID_REQUEST without a body, and for JSON that is not an object
 */
export async function readDefinition(call: HttpCall): Promise<string | object> {
  const body = await readBody(call, DEFINITION_TYPES);
  if (!body) throw missing();
  const text = decodeText(body.bytes);
  if (body.type !== 'application/json') return text;
  const value = parseJson(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw missing();
}

function missing(): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', 'the body must be a definition: YAML, or an object in JSON');
}
