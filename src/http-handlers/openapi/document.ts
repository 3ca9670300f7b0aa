/** The OpenAPI 3.1 document of the API. The forms of bodies are those that check the requests. */

import * as z from 'zod/mini';
import type { BodyForm, CallRoute } from '../api/define-call.ts';
import { API_ROOT } from '../reply/location.ts';
import { STATUS } from '../reply/status.ts';
import { bodyNotes } from '../request/body-fields.ts';
import { DEFINITION_TYPES, PATCH_TYPES } from '../request/read-json.ts';
import { ref, type Schema, SHAPES } from './shapes.ts';

export interface DocumentOptions {
  /** Precedes every path. */
  readonly basePath: string;
  /** The word in the header of API keys. */
  readonly brand: string;
}

const JSON_TYPE = 'application/json';
const ANY = 'any JSON value';

const HEADER_PARAMETERS: Readonly<Record<string, Schema>> = {
  'If-Match': { type: 'string', description: 'the `ETag` that the resource must have' },
  'Idempotency-Key': { type: 'string', description: 'the request counts once, however often it is sent' },
  Prefer: { type: 'string', description: '`respond-async`: the answer is 202 at once' },
  'Last-Event-ID': { type: 'string', description: 'the stream continues after this event' },
};

const HEADERS: Readonly<Record<string, Schema>> = {
  ETag: { description: 'the version, for `If-Match`', schema: { type: 'string' } },
  Location: { description: 'the path of what was created or started', schema: { type: 'string' } },
  'X-RateLimit-Limit': { description: 'requests in a window', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'requests that are left', schema: { type: 'integer' } },
  'X-RateLimit-Reset': { description: 'when the window ends, Unix seconds', schema: { type: 'integer' } },
  'Retry-After': { description: 'seconds to wait', schema: { type: 'integer' } },
  'WWW-Authenticate': { description: 'the scheme, and what is missing', schema: { type: 'string' } },
};
const LIMIT_HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
/** The headers of errors, besides those of limits. */
const ERROR_HEADERS: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  429: ['Retry-After'],
};

/** @returns the document of these routes for a service */
export function createOpenApi(routes: readonly CallRoute[]): (service: DocumentOptions) => Schema {
  const paths: Record<string, Record<string, Schema>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = describeCall(route);
  }
  const components = { schemas: SHAPES, headers: HEADERS, responses: errorResponses() };
  return (service) => documentOf({ paths, components }, service);
}

interface Described {
  readonly paths: Schema;
  readonly components: Schema;
}

function documentOf({ paths, components }: Described, { basePath, brand }: DocumentOptions): Schema {
  return {
    openapi: '3.1.0',
    info: {
      title: 'ensemble-orchestrator',
      version: 'v1',
      description: 'Runs ensembles, and shows what they do. Every POST takes `Idempotency-Key`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    security: [{ bearer: [] }],
    paths,
    components: {
      ...components,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: `X-${brand.toUpperCase()}-API-KEY` },
      },
    },
  };
}

function describeCall(route: CallRoute): Schema {
  const { id, summary, query = {}, body, bodyShown, sends = [] } = route.spec;
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => parameter(name, 'path'));
  const inQuery = Object.entries(query).map(([name, { schema }]) => parameter(name, 'query', schema));
  const headers = [
    ...(route.readsIfMatch ? ['If-Match'] : []),
    ...(route.method === 'POST' ? ['Idempotency-Key'] : []),
    ...sends,
  ].map((name) => parameter(name, 'header', HEADER_PARAMETERS[name]));
  const parameters = [...inPath, ...inQuery, ...headers];
  const [tag = ''] = route.path.replace(API_ROOT, '').split('/').filter(Boolean);
  const form = bodyShown ?? body;
  return {
    operationId: id,
    summary,
    tags: [tag.replace('.json', '')],
    ...(route.scope === 'public' && { security: [] }),
    ...(route.takesApiKey && { security: [{ bearer: [] }, { apiKey: [] }] }),
    ...(route.takesTicket && { security: [{ bearer: [] }, {}] }),
    'x-scope': route.scope,
    ...(parameters.length > 0 && { parameters }),
    ...(hasBody(form) && { requestBody: requestBody(form, route.spec.bodyShapes) }),
    responses: { ...successes(route), ...failures(route) },
  };
}

function parameter(name: string, place: 'path' | 'query' | 'header', given: Schema = { type: 'string' }): Schema {
  const { description, ...schema } = given;
  return {
    name,
    in: place,
    ...(place === 'path' && { required: true }),
    ...(description !== undefined && { description }),
    schema,
  };
}

type Form = Exclude<BodyForm, 'own' | undefined>;

function hasBody(form: BodyForm): form is Form {
  return form !== undefined && form !== 'own';
}

function requestBody(body: Form, shapes: CallRoute['spec']['bodyShapes'] = {}): Schema {
  const content = (types: readonly string[], schema: Schema) =>
    Object.fromEntries(types.map((type) => [type, { schema }]));
  switch (body) {
    case 'json':
      return { content: content([JSON_TYPE], { description: ANY }) };
    case 'object':
      return { required: true, content: content([JSON_TYPE], { type: 'object', additionalProperties: true }) };
    case 'patch':
      return {
        required: true,
        content: content(PATCH_TYPES, {
          type: 'object',
          additionalProperties: true,
          description: 'a JSON Merge Patch',
        }),
      };
    case 'definition': {
      const definition = { description: 'the definition; `ensemble schema` prints its form' };
      const yaml = DEFINITION_TYPES.filter((type) => type !== JSON_TYPE);
      return {
        required: true,
        content: {
          ...content([JSON_TYPE], { type: 'object', additionalProperties: true, ...definition }),
          ...content(yaml, { type: 'string', ...definition }),
        },
      };
    }
    default: {
      const schema = toJson(body());
      const shaped = Object.entries(shapes).map(([field, name]) => [field, SHAPES[name]]);
      Object.assign(schema.properties ?? {}, Object.fromEntries(shaped));
      const isRequired = ((schema.required as readonly string[] | undefined)?.length ?? 0) > 0;
      return { ...(isRequired && { required: true }), content: content([JSON_TYPE], schema) };
    }
  }
}

function toJson(form: z.ZodMiniType): Schema {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(form, {
    ...{ target: 'draft-2020-12', io: 'input', unrepresentable: 'any', metadata: bodyNotes() },
  });
  return schema;
}

function successes({ scope, spec }: CallRoute): Record<string, Schema> {
  const { id, replies } = spec;
  const all: Record<string, Schema> = {};
  for (const [status, shape] of Object.entries(replies)) {
    const json = { [JSON_TYPE]: { schema: shape ? ref(shape) : { type: 'object', additionalProperties: true } } };
    const content = id === 'streamEvents' ? { 'text/event-stream': { schema: { type: 'string' } } } : json;
    const own = headersOf(spec).filter((name) => name !== 'Location' || status !== '200');
    all[status] = {
      description: status === '204' ? 'the stream has ended' : 'success',
      headers: headerRefs([...own, ...(scope === 'public' ? [] : LIMIT_HEADERS)]),
      ...(status !== '204' && { content }),
    };
  }
  return all;
}

/** The headers of a success. `Location` is that of 201 and 202. */
export function headersOf({ etag, location, headers }: CallRoute['spec']): readonly string[] {
  return headers ?? [...(etag ? ['ETag'] : []), ...(location ? ['Location'] : [])];
}

/** The errors that a request to a route may have. `default` are those of the service. */
function failures({ scope, method, path, readsIfMatch, spec }: CallRoute): Record<string, Schema> {
  const takesBody = hasBody(spec.bodyShown ?? spec.body);
  const isChange = method !== 'GET';
  const may: Readonly<Record<number, boolean>> = {
    ...{ 400: scope !== 'public', 401: scope !== 'public', 403: scope !== 'public' && scope !== 'any' },
    ...{ 404: path.includes(':'), 409: isChange || readsIfMatch === true },
    ...{ 413: takesBody, 415: takesBody, 422: method === 'POST', 429: scope !== 'public' },
  };
  const statuses = Object.keys(may).filter((status) => may[Number(status)]);
  return Object.fromEntries([...statuses, 'default'].map((name) => [name, { $ref: `#/components/responses/${name}` }]));
}

/** One for each status of a caller's error, and `default` for the others. */
function errorResponses(): Schema {
  const codes = Object.entries(STATUS);
  const describe = (description: string, headers: readonly string[]) => ({
    description,
    headers: headerRefs([...headers, ...LIMIT_HEADERS]),
    // With a second type, every client would have to find out which one it got.
    content: { [JSON_TYPE]: { schema: ref('Error') } },
  });
  const statuses = [...new Set(codes.map(([, status]) => status))].filter((status) => status < 500 && status !== 405);
  const responses = statuses.sort().map((status) => {
    const names = codes.filter(([, of]) => of === status).map(([code]) => `\`${code}\``);
    return [String(status), describe(names.join(', '), ERROR_HEADERS[status] ?? [])];
  });
  return {
    ...Object.fromEntries(responses),
    default: describe(
      'an error, whose `code` says which; a request whose `Accept` names `application/problem+json` gets a `Problem`',
      ['Retry-After'],
    ),
  };
}

function headerRefs(names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
