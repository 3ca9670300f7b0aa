/** Reads the body of a webhook's request, as one of the kinds that its trigger accepts. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { bodyWasRead } from '../../engine/host/host.port.ts';
import { BODY_TYPES, type BodyKind } from '../../engine/webhook/webhook.ts';
import type { ServedWebhook } from '../../orchestrator/webhooks/webhooks.ts';
import type { HttpCall } from '../call.ts';
import { checkCharset, decodeText, parseJson, readBytes, refuseCoding, weigh } from '../request/read-json.ts';

export interface Payload {
  readonly body: Json;
  readonly rawBody: string;
}

interface PayloadReader {
  /** The bytes as they came, for a signature. */
  bytes(): Promise<Uint8Array>;
  /** @throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, INVALID_REQUEST, OVERLOADED */
  read(): Promise<Payload>;
}

/** The raw body is the signed one, so a mark of the byte order stays in it. */
const KEEPS_MARK = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The body is read once, for the check of the signature or for the input. */
export function payloadReader(call: HttpCall, { accept, maxBodyBytes }: ServedWebhook): PayloadReader {
  const { request, dependencies } = call;
  let bytes: Promise<Uint8Array> | undefined;
  const readOnce = () => {
    refuseCoding(request);
    bytes ??= request.hasBody
      ? readBytes(call, maxBodyBytes ?? dependencies.maxBodyBytes)
      : Promise.resolve(new Uint8Array());
    return bytes;
  };
  return {
    async bytes() {
      if (request.isParsed) throw bodyWasRead();
      return readOnce();
    },
    async read() {
      const header = request.header('content-type');
      const kind = header === undefined ? undefined : kindOf(header);
      if (header !== undefined && (kind === undefined || !accept.includes(kind))) throw unsupportedBody(accept);
      const body = await readOnce();
      if (body.byteLength === 0) return { body: null, rawBody: '' };
      if (kind === undefined) throw unsupportedBody(accept);
      weigh(call, body);
      const rawBody = decodeText(body, KEEPS_MARK);
      return { body: parse(request.isParsed ? 'json' : kind, rawBody), rawBody };
    },
  };
}

/** @throws UNSUPPORTED_MEDIA_TYPE for another charset than UTF-8 */
function kindOf(header: string): BodyKind | undefined {
  const [type = '', ...parameters] = header.toLowerCase().split(';');
  checkCharset(parameters);
  const given = type.trim();
  if (given === BODY_TYPES.json || /^application\/[a-z0-9.+-]+\+json$/.test(given)) return 'json';
  if (given === BODY_TYPES.form) return 'form';
  return given.startsWith('text/') ? 'text' : undefined;
}

function parse(kind: BodyKind, text: string): Json {
  if (kind === 'json') return parseJson(text.replace(/^\uFEFF/, '')) as Json;
  return kind === 'form' ? fieldsOf(text) : text;
}

/** More would keep the process from other requests for too long. */
const MAX_FIELDS = 10_000;

/** The fields of a query or a form. One that is given several times is a list. @throws INVALID_REQUEST for more than 10,000 */
export function fieldsOf(text: string): JsonObject {
  let count = 1;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) count += 1;
  if (count > MAX_FIELDS) throw new OrchestratorError('INVALID_REQUEST', `more than ${MAX_FIELDS} fields`);
  const fields = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const values = fields.get(name);
    if (values) values.push(value);
    else fields.set(name, [value]);
  }
  return Object.fromEntries(
    [...fields].map(([name, values]) => [name, values.length === 1 ? (values[0] as Json) : values]),
  );
}

function unsupportedBody(accept: readonly BodyKind[]): OrchestratorError {
  const types = accept.map((kind) => `\`${BODY_TYPES[kind]}\``).join(', ');
  return new OrchestratorError('UNSUPPORTED_MEDIA_TYPE', `this webhook takes a body with one of these types: ${types}`);
}
