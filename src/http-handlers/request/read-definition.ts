/** Reads a definition from a request's body: YAML, or JSON. */

import { isOrchestratorError, OrchestratorError } from '../../engine/base/errors.ts';
import type { HttpCall } from '../call.ts';
import { DEFINITION_TYPES, decodeText, isObject, parseJson, readBody } from './read-json.ts';

/** A definition is read and compiled at once, so its size bounds how long it blocks everything else. */
const MAX_DEFINITION_BYTES = 256 * 1024;

/**
 * Reads the definition of a body, and passes it on: the text of YAML, or the value of JSON. JSON that is not valid is passed on once more, as
 * text: YAML takes it too, and its problems have their lines.
 *
 * @throws as `readJson`, also for more than 256 KiB; INVALID_REQUEST without a body, and for JSON that is not an object; what `use` throws
 */
export async function withDefinition<T>(call: HttpCall, use: (definition: string | object) => Promise<T>): Promise<T> {
  const text = await readText(call);
  if (typeof text === 'string') return use(text);
  try {
    return await use(text.value);
  } catch (thrown) {
    if (!isOrchestratorError(thrown, 'INVALID_DEFINITION')) throw thrown;
    return use(text.json);
  }
}

async function readText(call: HttpCall): Promise<string | { readonly json: string; readonly value: object }> {
  const body = await readBody(call, DEFINITION_TYPES);
  if (!body) throw missingDefinition();
  if (body.bytes.byteLength > MAX_DEFINITION_BYTES) {
    const message = `a definition over HTTP has at most ${MAX_DEFINITION_BYTES} bytes, and this one has ${body.bytes.byteLength}; split it into several ensembles`;
    throw new OrchestratorError('PAYLOAD_TOO_LARGE', message, { details: { maxBytes: MAX_DEFINITION_BYTES } });
  }
  const text = decodeText(body.bytes);
  if (body.type !== 'application/json') return text;
  const value = parseJson(text);
  if (isObject(value)) return { json: text, value };
  throw missingDefinition();
}

function missingDefinition(): OrchestratorError {
  return new OrchestratorError('INVALID_REQUEST', 'the body must be a definition: YAML, or an object in JSON');
}
