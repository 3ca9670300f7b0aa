/** Reads a request's body, as JSON unless the route takes other types: the sender never chooses the parser. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import { isPromise } from '../../engine/base/maybe-promise.ts';
import type { PlainRequest } from '../../engine/host/host.port.ts';
import type { HandlerDependencies, HttpCall } from '../call.ts';
import { weighJson } from './byte-budget.ts';

const JSON_TYPES: readonly string[] = ['application/json'];
/** The types of a JSON Merge Patch. */
export const PATCH_TYPES: readonly string[] = ['application/merge-patch+json', 'application/json'];
/** The types of a definition: YAML has had several. */
export const DEFINITION_TYPES: readonly string[] = [
  ...['application/json', 'application/yaml', 'application/x-yaml', 'text/yaml', 'text/x-yaml'],
];

/**
 * The value of the body; `empty` when there is none. Of a key that is twice in an object the last one counts, as in `JSON.parse`
 * on every runtime. The reader of the value checks its nesting and its keys.
 *
 * @throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INVALID_REQUEST; OVERLOADED when too many bytes are held already
 */
export async function readJson(call: HttpCall, empty: unknown = {}, types = JSON_TYPES): Promise<unknown> {
  const body = await readBody(call, types);
  if (!body) return empty;
  weigh(call, body.bytes);
  return parseJson(decodeText(body.bytes));
}

/**
 * The bytes of the body with their type; undefined when there are none.
 * @throws as {@link readJson}
 */
export async function readBody(
  call: HttpCall,
  types: readonly string[],
): Promise<{ readonly type: string; readonly bytes: Uint8Array } | undefined> {
  const { request } = call;
  const header = request.header('content-type');
  const type = header === undefined ? undefined : readType(header, types);
  refuseCoding(request);
  if (!request.hasBody) return undefined;
  const bytes = await readBytes(call);
  if (bytes.byteLength === 0) return undefined;
  if (type === undefined) throw unsupportedMediaType(`a body needs the header \`Content-Type: ${types[0]}\``);
  return { type, bytes };
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true });

function readType(header: string, types: readonly string[]): string {
  const [first = ''] = types;
  if (header === first) return header;
  const [given = '', ...parameters] = header.toLowerCase().split(';');
  const type = given.trim();
  if (!types.includes(type)) {
    const isDefinition = types === DEFINITION_TYPES;
    throw unsupportedMediaType(
      isDefinition
        ? 'a definition must be YAML or JSON, with `Content-Type: application/yaml` or `application/json`'
        : `a body must be JSON, with \`Content-Type: ${first}\``,
    );
  }
  checkCharset(parameters);
  return type;
}

/** @throws UNSUPPORTED_MEDIA_TYPE for another charset than UTF-8 */
export function checkCharset(parameters: readonly string[]): void {
  for (const parameter of parameters) {
    const [name = '', value = ''] = parameter.trim().split('=');
    if (name === 'charset' && value.replaceAll('"', '') !== 'utf-8')
      throw unsupportedMediaType('a body is read as UTF-8 only: leave the charset out');
  }
}

/** @throws UNSUPPORTED_MEDIA_TYPE for a compressed body */
export function refuseCoding(request: PlainRequest): void {
  const coding = request.header('content-encoding');
  if (coding === undefined || coding.trim().toLowerCase() === 'identity') return;
  throw unsupportedMediaType('a body must not be encoded: leave Content-Encoding out');
}

/** Counts the memory that a body takes as a value. @throws OVERLOADED */
export function weigh(call: HttpCall, bytes: Uint8Array): void {
  if (!call.held.holdUpTo(weighJson(bytes))) throw overloadedWithBodies();
}

// A host may pass on a body with the transfer encoding that it received.
function checkTransfer(coding: string | undefined): void {
  if (coding === undefined || coding.trim().toLowerCase() === 'chunked') return;
  throw unsupportedMediaType('a body must not be encoded: send no Transfer-Encoding other than `chunked`');
}

/**
 * The announced length of an authenticated caller counts at once, so that an accepted body is not refused halfway. Others' bytes count as
 * they arrive.
 * @throws PAYLOAD_TOO_LARGE, OVERLOADED; INVALID_REQUEST, also for a body that arrives too slowly
 */
export async function readBytes(
  { request, dependencies, held, principal }: HttpCall,
  maxBodyBytes = dependencies.maxBodyBytes,
): Promise<Uint8Array> {
  const announced = request.header('content-length');
  if (announced === undefined) checkTransfer(request.header('transfer-encoding'));
  let size = Number(announced ?? 0);
  let isLate = false;
  const fits = () => !isLate && size <= maxBodyBytes && held.holdUpTo(size);
  let bytes: Uint8Array | undefined;
  if (size <= maxBodyBytes && (!principal || fits())) {
    size = 0;
    const take = (more: number) => {
      size += more;
      return fits();
    };
    try {
      const body = request.body(take);
      bytes = isPromise(body) ? await inTime(body, () => size, dependencies) : body;
    } catch (cause) {
      isLate = true;
      if (cause instanceof OrchestratorError) throw cause;
      throw new OrchestratorError('INVALID_REQUEST', 'the body could not be read to its end', { cause });
    }
  }
  if (bytes) return bytes;
  if (size <= maxBodyBytes) throw overloadedWithBodies();
  throw new OrchestratorError('PAYLOAD_TOO_LARGE', `the body is larger than ${maxBodyBytes} bytes`, {
    details: { maxBytes: maxBodyBytes },
  });
}

/** From then on, a body must have arrived at `BYTES_PER_MS`: a sender that holds memory back from others must pay for it. */
const PATIENCE_MS = 30_000;
const BYTES_PER_MS = 8;

/** @param arrived - the bytes so far @throws INVALID_REQUEST for a body that arrives too slowly */
function inTime<T>(body: Promise<T>, arrived: () => number, { setTimer, monotonic }: HandlerDependencies): Promise<T> {
  const begun = monotonic();
  return new Promise((resolve, reject) => {
    let cancel: () => void;
    const watch = (ms: number) => {
      cancel = setTimer(ms, () => {
        const leftMs = begun + PATIENCE_MS + arrived() / BYTES_PER_MS - monotonic();
        if (leftMs > 0) watch(Math.ceil(leftMs));
        else reject(new OrchestratorError('INVALID_REQUEST', 'the body arrived too slowly; send it again'));
      });
    };
    watch(PATIENCE_MS);
    body.then(resolve, reject).finally(() => cancel());
  });
}

/** @throws INVALID_REQUEST */
export function decodeText(bytes: Uint8Array, decoder = UTF_8): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new OrchestratorError('INVALID_REQUEST', 'the body is not valid UTF-8');
  }
}

/** @throws INVALID_REQUEST */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, and differs on each runtime.
    throw new OrchestratorError('INVALID_REQUEST', 'the body is not valid JSON');
  }
}

function overloadedWithBodies(): OrchestratorError {
  return new OrchestratorError(
    'OVERLOADED',
    'the bodies of all requests together are too large for the service now; try again later',
  );
}

function unsupportedMediaType(message: string): OrchestratorError {
  return new OrchestratorError('UNSUPPORTED_MEDIA_TYPE', message);
}

/** Whether a value of JSON is an object. */
export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
