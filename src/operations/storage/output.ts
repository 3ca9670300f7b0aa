/** What a `storage` agent returns, as JSON Schemas by the kind of store and the action. */

import type { JsonObject } from '../../engine/base/json/json.ts';
import type { NeededValue } from '../../engine/operation/operation.port.ts';
import { scanSql } from '../../engine/storage/sql-text.ts';
import { actionOf, KINDS, targetName } from './storage-config.ts';

const string = { type: 'string' };
const boolean = { type: 'boolean' };
const integer = { type: 'integer' };
const fields = (properties: JsonObject, optional: readonly string[] = []): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
});
const counts = (list: string) => ({ type: 'integer', 'x-countOf': list });
const stored = fields({ key: string, success: { const: true } });
const deleted = fields({ key: string, success: boolean });
const keys = fields({ keys: { type: 'array', items: string }, count: counts('keys'), nextCursor: string }, [
  'nextCursor',
]);
const row = { type: 'object', additionalProperties: true };
const rows = fields({ results: { type: 'array', items: row }, count: counts('results'), nextCursor: string }, [
  'nextCursor',
]);
const exported = fields({ data: { type: 'array' }, content: string, contentType: string, count: counts('data') });
const exportedTo = fields({ key: string, binding: string, contentType: string, count: integer, size: integer });

const OUTPUTS: Readonly<Record<string, JsonObject>> = {
  'kv get': fields({ value: {}, found: boolean }),
  'kv put': stored,
  'kv delete': deleted,
  'kv list': keys,
  'objects put': stored,
  'objects delete': deleted,
  'objects list': keys,
  'sql query': rows,
  'sql execute': fields({ changes: integer, success: { const: true } }),
};

const object = (content: JsonObject) =>
  fields({ content, contentType: string, size: integer, encoding: { const: 'base64' } }, ['encoding']);
const OBJECTS: Readonly<Record<string, JsonObject>> = {
  text: object(string),
  json: object({}),
  csv: object({ type: 'array', items: row }),
  ndjson: object({ type: 'array' }),
};

export function storageOutput(config: JsonObject): JsonObject | undefined {
  const kind = KINDS[config.type as keyof typeof KINDS] as string | undefined;
  const action = actionOf(config);
  if (kind === undefined || typeof action !== 'string') return undefined;
  if (action === 'export') return targetName(config) === undefined ? exported : exportedTo;
  if (kind === 'objects' && action === 'get') return OBJECTS[String(config.format ?? 'text')];
  return OUTPUTS[`${kind} ${action}`];
}

const NO_KEY = 'then another key is meant';
const KEYS: readonly NeededValue[] = [
  { path: ['key'], what: NO_KEY },
  { path: ['exportOptions', 'to', 'key'], what: NO_KEY },
];
const NO_ROW = 'then the statement changes other rows, or none';
const NO_VALUE = 'then the statement writes null';

/** What must not be null: keys, and the values of statements that write. */
export function storageNeeds({ query, params }: JsonObject): readonly NeededValue[] {
  if (typeof query !== 'string' || !/^\s*(?:insert|replace|update|delete|merge)\b/i.test(query)) return KEYS;
  // A statement that says what null means is meant so.
  const [saysNull, where] = [/\bis\s+(?:not\s+)?null\b|\bcoalesce\s*\(/i.test(query), query.search(/\bwhere\b/i)];
  const rows = { what: NO_ROW, accidentOnly: saysNull };
  const values = { what: NO_VALUE, accidentOnly: true };
  const all: NeededValue[] = [
    ...KEYS,
    { path: ['query'], part: 'after-where', ...rows },
    { path: ['query'], part: 'before-where', ...values },
  ];
  if (typeof params !== 'object' || params === null) return all;
  const tokens = scanSql(query).filter(({ kind }) => kind === 'placeholder');
  let next = 0;
  for (const { text, start } of tokens) {
    const key = text === '?' ? next++ : text.startsWith('$') ? Number(text.slice(1)) - 1 : text.slice(1);
    all.push({ path: ['params', key], ...(where >= 0 && start > where ? rows : values) });
  }
  return all;
}
