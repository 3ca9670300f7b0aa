/** Compares responses with the OpenAPI document: their status, and the form of their body. */

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { HttpHandler } from '../../src/engine/host/host.port.ts';
import { API_ROUTES } from '../../src/http-handlers/api/routes.ts';
import { createOpenApi, headersOf } from '../../src/http-handlers/openapi/document.ts';

export const OPEN_API = createOpenApi(API_ROUTES)({ basePath: '', brand: 'service' });

const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema(OPEN_API as object, 'api');
const validators = new Map<string, ValidateFunction>();

function validatorOf(shape: string): ValidateFunction {
  const known = validators.get(shape);
  if (known) return known;
  const made = ajv.compile({ $ref: `api#/components/schemas/${shape}` });
  validators.set(shape, made);
  return made;
}

const ROUTES = API_ROUTES.map(({ method, path, spec }) => ({
  method,
  pattern: new RegExp(`${path.replace(/:\w+/g, '[^/]+')}$`),
  spec,
}));

/** @returns what is wrong with a response; undefined for one that fits, and for a path that is not in the document */
export async function problemOf(method: string, path: string, response: Response): Promise<string | undefined> {
  const route = ROUTES.find((one) => one.method === method && one.pattern.test(path));
  const type = response.headers.get('content-type') ?? '';
  if (!route) return undefined;
  const { replies } = route.spec;
  const headers = headersOf(route.spec);
  if (response.status < 400 && response.status !== 304 && !(response.status in replies))
    return `${method} ${path}: the document has no status ${response.status}`;
  const sent = (['ETag', 'Location'] as const).filter((name) => response.headers.has(name));
  const said = headers.filter((name) => name !== 'Location' || response.status !== 200);
  if (response.status < 300 && sent.join() !== said.join())
    return `${method} ${path} ${response.status} has the headers ${sent.join() || 'none'}, not ${said.join() || 'none'}`;
  // JSON lines are no JSON text.
  if (!type.includes('json') || type.includes('ndjson')) return undefined;
  const body: unknown = await response.clone().json();
  const isProblem = type.startsWith('application/problem+json');
  const shape = response.status >= 400 ? (isProblem ? 'Problem' : 'Error') : replies[response.status];
  if (shape === undefined) return undefined;
  const validate = validatorOf(shape);
  if (validate(body)) return undefined;
  return `${method} ${path} ${response.status} is no ${shape}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(body)}`;
}

/** A handler whose responses are compared with the document. It fails the request that gets another one. */
export function checked(handler: HttpHandler): HttpHandler {
  const fetchChecked: HttpHandler['fetch'] = async (request, host) => {
    const { method, url } = request;
    const response = await handler.fetch(request, host);
    const problem = await problemOf(method, new URL(url).pathname, response);
    if (problem !== undefined) throw new Error(problem);
    return response;
  };
  // The raw handler, which Node's hosts call, is a hidden property.
  return Object.defineProperties({} as HttpHandler, {
    ...Object.getOwnPropertyDescriptors(handler),
    fetch: { value: fetchChecked, enumerable: true, writable: true, configurable: true },
  });
}
