/** Reads a request's body as JSON only: the sender never chooses the parser. */

import { OrchestratorError } from '../engine/base/errors.ts';
import { isPromise } from '../engine/base/maybe-promise.ts';
import { weighJson } from './body-budget.ts';
import type { HttpCall } from './call.ts';

/**
 * The value of the body; `empty` when there is none. Of a key that is twice in an object the last one counts, as in `JSON.parse`
 * on every runtime. The reader of the value checks its nesting and its keys.
 *
 * @throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INVALID_REQUEST; OVERLOADED when too many bytes are held already
 */
export async function readJson(call: HttpCall, empty: unknown = {}): Promise<unknown> {
  const { request } = call;
  const type = request.header('content-type');
  if (type !== undefined) checkType(type);
  const coding = request.header('content-encoding');
  if (coding !== undefined && coding.trim().toLowerCase() !== 'identity') {
    throw unsupported('a body must not be encoded: leave Content-Encoding out');
  }
  if (!request.hasBody) return empty;
  const bytes = await readBytes(call);
  if (bytes.byteLength === 0) return empty;
  if (type === undefined) throw unsupported('a body needs the header `Content-Type: application/json`');
  if (!call.held.holdUpTo(weighJson(bytes))) throw overloaded();
  return parse(bytes);
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true });

function checkType(header: string): void {
  if (header === 'application/json') return;
  const [type = '', ...parameters] = header.toLowerCase().split(';');
  if (type.trim() !== 'application/json')
    throw unsupported('a body must be JSON, with `Content-Type: application/json`');
  for (const parameter of parameters) {
    const [name = '', value = ''] = parameter.trim().split('=');
    if (name === 'charset' && value.replaceAll('"', '') !== 'utf-8')
      throw unsupported('JSON is read as UTF-8 only: leave the charset out');
  }
}

// A host may pass on a body with the transfer encoding that it received.
function checkTransfer(coding: string | undefined): void {
  if (coding === undefined || coding.trim().toLowerCase() === 'chunked') return;
  throw unsupported('a body must not be encoded: send no Transfer-Encoding other than `chunked`');
}

/** An announced length counts at once, so that an accepted body is not refused halfway. Without one, the bytes count as they arrive. */
async function readBytes({ request, parts, held }: HttpCall): Promise<Uint8Array> {
  const { maxBodyBytes } = parts;
  const announced = request.header('content-length');
  if (announced === undefined) checkTransfer(request.header('transfer-encoding'));
  let size = Number(announced ?? 0);
  const fits = () => size <= maxBodyBytes && held.holdUpTo(size);
  let bytes: Uint8Array | undefined;
  if (fits()) {
    size = 0;
    const take = (more: number) => {
      size += more;
      return fits();
    };
    try {
      const body = request.body(take);
      bytes = isPromise(body) ? await body : body;
    } catch (cause) {
      throw new OrchestratorError('INVALID_REQUEST', 'the body could not be read to its end', { cause });
    }
  }
  if (bytes) return bytes;
  if (size <= maxBodyBytes) throw overloaded();
  throw new OrchestratorError('PAYLOAD_TOO_LARGE', `the body is larger than ${maxBodyBytes} bytes`, {
    details: { maxBytes: maxBodyBytes },
  });
}

function parse(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = UTF_8.decode(bytes);
  } catch {
    throw new OrchestratorError('INVALID_REQUEST', 'the body is not valid UTF-8');
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, and differs on each runtime.
    throw new OrchestratorError('INVALID_REQUEST', 'the body is not valid JSON');
  }
}

function overloaded(): OrchestratorError {
  return new OrchestratorError(
    'OVERLOADED',
    'the bodies of all requests together are too large for the service now; try again later',
  );
}

function unsupported(message: string): OrchestratorError {
  return new OrchestratorError('UNSUPPORTED_MEDIA_TYPE', message);
}
