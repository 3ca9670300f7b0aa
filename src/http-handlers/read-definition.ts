/** Reads a definition from a request's body: YAML, or JSON. */

import { OrchestratorError } from '../engine/base/errors.ts';
import type { HttpCall } from './call.ts';
import { DEFINITION_TYPES, decodeText, isObject, parseJson, readBody } from './read-json.ts';

/** A definition is read and compiled at once, so its size bounds how long it blocks everything else. */
const MAX_DEFINITION_BYTES = 256 * 1024;

/**
 * @returns the text of YAML, or the value of JSON
 * @throws as `readJson`, also for more than 256 KiB; INVALID_REQUEST without a body, and for JSON that is not an object
 */
export async function readDefinition(call: HttpCall): Promise<string | object> {
  const body = await readBody(call, DEFINITION_TYPES);
  if (!body) throw missing();
  if (body.bytes.byteLength > MAX_DEFINITION_BYTES) {
    const message = `a definition over HTTP has at most ${MAX_DEFINITION_BYTES} bytes, and this one has ${body.bytes.byteLength}; split it into several ensembles`;
    throw new OrchestratorError('PAYLOAD_TOO_LARGE', message, { details: { maxBytes: MAX_DEFINITION_BYTES } });
  }
  const text = decodeText(body.bytes);
  if (body.type !== 'application/json') return text;
  const value = parseJson(text);
  if (isObject(value)) return value;
  throw missing();
}

function missing(): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', 'the body must be a definition: YAML, or an object in JSON');
}
