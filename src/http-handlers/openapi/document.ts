/** The OpenAPI 3.1 document of the API. The forms of bodies are those that check the requests. */

import * as z from 'zod/mini';
import { DEFINITION_TYPES, PATCH_TYPES } from '../read-json.ts';
import { bodyNotes } from '../body-fields.ts';
import { API_ROOT } from '../location.ts';
import type { Route } from '../router.ts';
import { OPERATIONS, type Operation } from './operations.ts';
import { ref, type Schema, SHAPES } from './shapes.ts';

export interface DocumentOptions {
  /** Precedes every path. */
  readonly basePath: string;
  /** The word in the header of API keys. */
  readonly brand: string;
}

const JSON_TYPE = 'application/json';
const ANY = 'any JSON value';

const QUERY: Readonly<Record<string, Schema>> = {
  limit: { type: 'integer', minimum: 1, default: 100, description: 'a larger number than 250 counts as 250' },
  cursor: { type: 'string', description: '`nextCursor` of the page before, with the same filter' },
  active: { type: 'string', enum: ['true', 'false'] },
  status: { type: 'string' },
  since: { type: 'string', description: 'Unix ms, or ISO 8601' },
  until: { type: 'string', description: 'Unix ms, or ISO 8601' },
};

/** @returns the document of these routes for a service */
export function createOpenApi(routes: readonly Route[]): (service: DocumentOptions) => Schema {
  const paths: Record<string, Record<string, Schema>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = describe(route);
  }
  return (service) => documentOf(paths, service);
}

function documentOf(paths: Schema, { basePath, brand }: DocumentOptions): Schema {
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
      schemas: SHAPES,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: `X-${brand.toUpperCase()}-API-KEY` },
      },
    },
  };
}

/** What the document says about a route. @throws Error for a route that `operations.ts` does not have */
export function operationOf({ method, path }: Pick<Route, 'method' | 'path'>): Operation {
  const key = `${method} ${path.startsWith(API_ROOT) ? path.slice(API_ROOT.length) : `/${path}`}`;
  const found = OPERATIONS[key];
  if (!found) throw new Error(`operations.ts has no ${key}`);
  return found;
}

function describe(route: Route): Schema {
  const { id, summary, replies, query = [], body, ifMatch } = operationOf(route);
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => parameter(name, 'path'));
  const headers = [
    ...(ifMatch ? [parameter('If-Match', 'header')] : []),
    ...(route.method === 'POST' ? [parameter('Idempotency-Key', 'header')] : []),
  ];
  const parameters = [...inPath, ...query.map((name) => parameter(name, 'query')), ...headers];
  const [tag = ''] = route.path.replace(API_ROOT, '').split('/').filter(Boolean);
  return {
    operationId: id,
    summary,
    tags: [tag.replace('.json', '')],
    ...(route.scope === 'public' && { security: [] }),
    ...(route.takesApiKey && { security: [{ bearer: [] }, { apiKey: [] }] }),
    ...(route.takesTicket && { security: [{ bearer: [] }, {}] }),
    'x-scope': route.scope,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: requestBody(body) }),
    responses: responses(replies, id),
  };
}

function parameter(name: string, place: 'path' | 'query' | 'header'): Schema {
  const { description, ...schema } = QUERY[name] ?? { type: 'string' };
  return {
    name,
    in: place,
    ...(place === 'path' && { required: true }),
    ...(description !== undefined && { description }),
    schema,
  };
}

function requestBody(body: NonNullable<Operation['body']>): Schema {
  const content = (types: readonly string[], schema: Schema) =>
    Object.fromEntries(types.map((type) => [type, { schema }]));
  switch (body) {
    case 'json':
      return { content: content([JSON_TYPE], { description: ANY }) };
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

function responses(replies: Operation['replies'], id: string): Schema {
  const all: Record<string, Schema> = {};
  for (const [status, shape] of Object.entries(replies)) {
    const stream = { 'text/event-stream': { schema: { type: 'string' } } };
    const other =
      id === 'streamEvents' ? stream : { [JSON_TYPE]: { schema: { type: 'object', additionalProperties: true } } };
    all[status] = {
      description: 'success',
      content: shape === undefined ? other : { [JSON_TYPE]: { schema: ref(shape) } },
    };
  }
  all.default = {
    description:
      'an error, whose `code` says which; a request whose `Accept` names `application/problem+json` gets a `Problem`',
    content: { [JSON_TYPE]: { schema: ref('Error') } },
  };
  return all;
}
