/** What an `api` agent returns, as a JSON Schema. */

import { isMap } from '../../engine/base/json/is-map.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { partSchema } from '../../engine/json-schema/check-json-schema.ts';
import type { NeededValue } from '../../engine/operation/operation.port.ts';

/** The statuses of `expect`, if it is written without expressions. Any other status fails the agent. */
function statuses({ expect = '2xx' }: JsonObject): readonly number[] | undefined {
  const entries = (Array.isArray(expect) ? expect : [expect]) as readonly unknown[];
  const all = entries.flatMap((entry): number[] => {
    const text = String(entry).trim().toLowerCase();
    if (/^[1-5]xx$/.test(text)) return Array.from({ length: 100 }, (_, i) => Number(text[0]) * 100 + i);
    return /^[1-5]\d\d$/.test(text) ? [Number(text)] : [Number.NaN];
  });
  return all.includes(Number.NaN) ? undefined : all;
}

/** Most calls have no `expect` and no pages: one schema serves them, which is read as a type once. */
const USUAL = outputOf({});

export function apiOutput(config: JsonObject): JsonObject {
  const isUsual =
    config.expect === undefined &&
    config.paginate === undefined &&
    config.response === undefined &&
    String(config.method ?? '').toUpperCase() !== 'HEAD';
  return isUsual ? USUAL : outputOf(config);
}

function outputOf(config: JsonObject): JsonObject {
  const headers = { type: 'object', additionalProperties: { type: 'string' } };
  const values = statuses(config);
  const status = values ? { enum: values } : { type: 'integer' };
  const paged = typeof config.paginate === 'object' && config.paginate !== null;
  const response = isMap(config.response) ? partSchema(config.response) : undefined;
  const body =
    response ??
    (paged ? { type: 'array' } : String(config.method ?? '').toUpperCase() === 'HEAD' ? { type: 'null' } : {});
  return {
    type: 'object',
    properties: {
      status,
      headers,
      body,
      ...(paged && { pages: { type: 'integer' }, next: { type: ['string', 'number', 'null'] } }),
    },
    required: ['status', 'headers', 'body', ...(paged ? ['pages', 'next'] : [])],
    additionalProperties: false,
  } as unknown as JsonObject;
}

export const API_NEEDS: readonly NeededValue[] = [
  { path: ['url'], part: 'path-of-url', what: 'then the path of the url lacks a part' },
  { path: ['body'], accidentOnly: true, what: 'then null is sent' },
  { path: ['form'], accidentOnly: true, what: 'then the form lacks a field' },
];
