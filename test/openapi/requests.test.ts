/** Requests that are generated from the OpenAPI document: none is answered 500, and every answer fits the document. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OPEN_API } from '../http-api/check-response.ts';
import { createService } from '../http-api/service.ts';

type Schema = Readonly<Record<string, unknown>>;
interface Described {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

const { paths } = OPEN_API as { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> };
const ROUTES = Object.entries(paths)
  // Calls that wait for the result of a paused execution are not answered.
  .filter(([path]) => !path.endsWith('/pause'))
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );

/** Names and ids that are there, and texts that are none. */
const NAMES = [
  'greet',
  'echo',
  'failing',
  'double',
  'go',
  'production',
  'v1.0.0',
  'latest',
  'exec_01M7WWEK7KT35PGB6V8KCP7X7Z',
];

function arbitraryOf(schema: Schema): fc.Arbitrary<unknown> {
  const { type, enum: values, properties, items, minimum } = schema;
  if (Array.isArray(values)) return fc.constantFrom(...values);
  if (Array.isArray(type)) return fc.constantFrom(...type).chain((one) => arbitraryOf({ type: one }));
  if (type === 'string') return fc.oneof(fc.constantFrom(...NAMES), fc.string({ maxLength: 20 }));
  if (typeof minimum === 'number') return fc.integer({ min: minimum, max: 300 });
  if (type === 'integer' || type === 'number') return fc.oneof(fc.integer(), fc.double());
  if (type === 'boolean') return fc.boolean();
  if (type === 'array') return fc.array(arbitraryOf((items as Schema) ?? {}), { maxLength: 3 });
  if (properties === undefined)
    return fc.oneof(fc.jsonValue(), fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue()));
  const required = (schema.required as string[] | undefined) ?? [];
  const fields = Object.entries(properties as Record<string, Schema>).map(
    ([key, one]) => [key, arbitraryOf(one)] as const,
  );
  return fc.record(Object.fromEntries(fields), { requiredKeys: required });
}

const requestOf = fc.constantFrom(...ROUTES).chain(({ path, method, operation }) => {
  const { parameters = [], requestBody } = operation;
  const named = (place: string) => parameters.filter((one) => one.in === place);
  const values = (place: string) =>
    fc.record(
      Object.fromEntries(
        named(place).map(({ name, schema }) => [
          name,
          place === 'path' ? fc.oneof(fc.constantFrom(...NAMES), arbitraryOf(schema)) : arbitraryOf(schema),
        ]),
      ),
      {
        requiredKeys: place === 'path' ? named(place).map(({ name }) => name) : [],
      },
    );
  const contents = Object.entries(requestBody?.content ?? {});
  const body =
    contents.length === 0
      ? fc.constant(undefined)
      : fc
          .constantFrom(...contents)
          .chain(([type, { schema }]) =>
            fc.oneof({ arbitrary: arbitraryOf(schema), weight: 4 }, fc.jsonValue()).map((value) => ({ type, value })),
          );
  return fc.record({
    path: fc.constant(path),
    method: fc.constant(method),
    inPath: values('path'),
    query: fc.oneof({ arbitrary: fc.constant({}), weight: 2 }, values('query')),
    inHeaders: fc.oneof({ arbitrary: fc.constant({}), weight: 2 }, values('header')),
    body,
  });
});

/** What a header may have. */
function plain(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const texts = Object.entries(values).map(([name, value]) => [name, String(value).replace(/[^\x20-\x7e]/g, '')]);
  return Object.fromEntries(texts);
}

it('no generated request is answered 500, and every answer fits the document', async () => {
  const { handler, bearer, orchestrator } = createService();
  const headers = await bearer('admin');
  await orchestrator.execute('greet', { who: 'Ada' });
  await orchestrator.components.register({ name: 'greet', kind: 'prompt' });
  const counts = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(requestOf, async ({ path, method, inPath, query, inHeaders, body }) => {
      if (path.endsWith('/events')) return;
      const at = path.replace(/\{(\w+)\}/g, (_all, name) => encodeURIComponent(String(inPath[name])));
      const given = Object.entries(query).map(([name, value]) => [name, String(value)]);
      const url = new URL(`http://localhost${at}`);
      url.search = new URLSearchParams(given).toString();
      const init: RequestInit = {
        method,
        headers: { ...headers, ...plain(inHeaders), ...(body && { 'content-type': body.type }) },
      };
      if (body) init.body = JSON.stringify(body.value) ?? 'null';
      const response = await handler.fetch(new Request(url, init), { ip: '192.0.2.1' });
      const { status } = response;
      counts.set(status, (counts.get(status) ?? 0) + 1);
      if (status === 500 && path.includes('/execute/')) {
        expect(await response.json()).toMatchObject({ error: { code: 'EXECUTION_FAILED' } });
        return;
      }
      expect([200, 201, 202, 400, 403, 404, 405, 409, 413, 415, 422, 429, 503]).toContain(status);
    }),
    { numRuns: 1_500 },
  );
  // The requests are not all nonsense.
  expect(counts.get(200)).toBeGreaterThan(150);
  await orchestrator.close({ grace: 0 });
}, 120_000);
