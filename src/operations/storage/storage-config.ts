/** The config of a `storage` agent: its schema, and which keys go with which type and action. */

import * as z from 'zod/mini';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { once } from '../../engine/base/once.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { quoted } from '../../engine/base/wording.ts';
import type { ConfigIssue } from '../../engine/operation/operation.port.ts';
import type { KvStore, ObjectStore, SqlDatabase } from '../../engine/storage/data.port.ts';

export type Binding = KvStore | ObjectStore | SqlDatabase;
export type Bindings = ReadonlyMap<string, Binding>;

/** The kind of store of each type. It is the name of the default binding too. */
export const KINDS = { kv: 'kv', r2: 'objects', objects: 'objects', d1: 'sql', sql: 'sql' } as const;

/** The most keys of a page of `list`, and the most rows of a page of `query`. */
const MAX_PAGE = 10_000;

// An evaluated value is refused with the message of its schema.
function wholeNumber(from: number, to: number, unit = '') {
  const inRange = [z.gte(from, `must be at least ${from}`), z.lte(to, `must be at most ${to}`)];
  return z.nullish(z.number(`must be a number${unit}`).check(z.int('must be a whole number'), ...inRange));
}

export const storageConfig = once(() => {
  const nonEmpty = z.optional(z.string('must be a string').check(z.minLength(1, 'must have at least 1 character')));
  const text = z.string('must be a string');
  const options = z.strictObject({
    headers: z.optional(z.boolean('must be true or false')),
    fields: z.optional(z.array(text, 'must be a list of column names').check(z.minLength(1, 'must name a column'))),
    to: z.optional(z.strictObject({ binding: nonEmpty, key: text })),
  });
  return z.strictObject({
    type: z.enum(['kv', 'r2', 'd1', 'objects', 'sql']),
    /** Default for `d1` and `sql` with a `query`: `query`. */
    action: z.optional(z.enum(['get', 'put', 'delete', 'list', 'query', 'execute', 'export'])),
    /** The name of a binding. Default: the kind of the type, `kv`, `objects` or `sql`. */
    binding: nonEmpty,
    key: nonEmpty,
    value: z.optional(z.unknown()),
    /** Seconds. Only for `kv`. */
    ttl: wholeNumber(1, 315_360_000, ' of seconds'),
    prefix: z.optional(text),
    /** Of an object that is read or written, or of an export. */
    format: z.optional(z.enum(['text', 'json', 'csv', 'ndjson'], 'must be `text`, `json`, `csv` or `ndjson`')),
    /** The content type of an object that is `put`. Default: derived from the value. */
    contentType: nonEmpty,
    /** Text in a definition. Its expressions become values. */
    query: z.optional(z.strictObject({ strings: z.array(text), values: z.array(z.unknown()) })),
    params: z.optional(
      z.union([z.array(z.unknown()), z.record(z.string(), z.unknown())], 'must be a list or an object of values'),
    ),
    limit: wholeNumber(1, MAX_PAGE),
    /** The `nextCursor` of the page before. Null is the first page. */
    cursor: z.optional(z.nullable(z.string('must be a string or null'))),
    exportOptions: z.optional(options),
  });
});

export type StorageConfig = z.output<ReturnType<typeof storageConfig>>;

/** The config as a definition writes it. Which keys go with which action, the table of actions says. */
export interface StorageConfigText {
  readonly type: keyof typeof KINDS;
  /** For `d1` and `sql`, `query` is the default. */
  readonly action?: 'get' | 'put' | 'delete' | 'list' | 'query' | 'execute' | 'export';
  /** The name of a binding. Default: the kind of the type, `kv`, `objects` or `sql`. */
  readonly binding?: string | undefined;
  readonly key?: string | undefined;
  readonly value?: Json | undefined;
  /** Seconds. Only for `kv`. */
  readonly ttl?: number | null | undefined;
  readonly prefix?: string | undefined;
  /** Of an object that is read or written, or of an export. */
  readonly format?: 'text' | 'json' | 'csv' | 'ndjson' | undefined;
  /** The content type of an object that is `put`. Default: derived from the value. */
  readonly contentType?: string | undefined;
  /** SQL, whose expressions become values, or a reference such as `query://orders@production`. */
  readonly query?: string | undefined;
  readonly params?: readonly Json[] | JsonObject | undefined;
  readonly limit?: number | null | undefined;
  /** The `nextCursor` of the page before. Null is the first page. */
  readonly cursor?: string | null | undefined;
  readonly exportOptions?: {
    readonly headers?: boolean | undefined;
    readonly fields?: readonly string[] | undefined;
    readonly to?: { readonly binding?: string; readonly key: string };
  };
}

interface ActionKeys {
  readonly needs: readonly string[];
  readonly takes?: readonly string[] | undefined;
}

const EXPORT = ['format', 'exportOptions'] as const;
const LIST: ActionKeys = { needs: [], takes: ['prefix', 'limit', 'cursor'] };

/** The keys of each action in addition to `type`, `action` and `binding`. */
const ACTION_KEYS: Readonly<Record<string, Readonly<Record<string, ActionKeys>>>> = {
  kv: {
    get: { needs: ['key'] },
    put: { needs: ['key', 'value'], takes: ['ttl'] },
    delete: { needs: ['key'] },
    list: LIST,
    export: { needs: [], takes: ['prefix', ...EXPORT] },
  },
  objects: {
    get: { needs: ['key'], takes: ['format'] },
    put: { needs: ['key', 'value'], takes: ['contentType', 'format'] },
    delete: { needs: ['key'] },
    list: LIST,
    export: { needs: [], takes: ['prefix', ...EXPORT] },
  },
  sql: {
    query: { needs: ['query'], takes: ['params', 'limit', 'cursor'] },
    execute: { needs: ['query'], takes: ['params'] },
    export: { needs: ['query'], takes: ['params', ...EXPORT] },
  },
};

/** What a config does. */
export function actionOf({ type, action, query }: JsonObject): JsonObject[string] | undefined {
  const isQuery = action === undefined && query !== undefined && (type === 'd1' || type === 'sql');
  return isQuery ? 'query' : action;
}

/** The name of the binding that a config uses. */
export function bindingName({ binding, type }: JsonObject): string {
  return typeof binding === 'string' ? binding : (KINDS[type as keyof typeof KINDS] ?? 'kv');
}

/** The name of the binding that an export is written to; undefined if it is part of the output. */
export function targetName({ exportOptions }: JsonObject): string | undefined {
  const { to } = isMap(exportOptions) ? exportOptions : {};
  if (!isMap(to)) return undefined;
  return typeof to.binding === 'string' ? to.binding : 'objects';
}

function isMap(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function checkConfig(given: JsonObject, bindings: Bindings): readonly ConfigIssue[] {
  const { type } = given;
  const action = actionOf(given);
  if (typeof type !== 'string') return [];
  if (action === undefined) return [{ path: ['action'], message: '`action` is required' }];
  if (typeof action !== 'string') return [];
  const to = isMap(given.exportOptions) && isMap(given.exportOptions.to) ? given.exportOptions.to : {};
  const fixed: readonly (readonly [path: readonly string[], value: unknown])[] = [
    [['type'], type],
    [['action'], action],
    [['binding'], given.binding],
    [['format'], given.format],
    [['exportOptions', 'to', 'binding'], to.binding],
  ];
  const dynamic = fixed.filter(([, value]) => String(value ?? '').includes('${'));
  if (dynamic.length > 0)
    return dynamic.map(([path]) => ({
      path,
      message: 'must be a plain word: it is decided when the definition is loaded',
    }));
  if (!Object.hasOwn(KINDS, type)) return [];
  const kind = KINDS[type as keyof typeof KINDS];
  const target = targetName(given);
  return [
    ...checkBinding(bindingName(given), kind, `\`type: ${type}\``, ['binding'], bindings),
    ...(target === undefined
      ? []
      : checkBinding(target, 'objects', '`exportOptions.to`', ['exportOptions', 'to', 'binding'], bindings)),
    ...checkKeys(given, kind, type, action),
    ...checkValues(given, action),
  ];
}

function checkBinding(
  name: string,
  kind: Binding['kind'],
  what: string,
  path: readonly string[],
  bindings: Bindings,
): readonly ConfigIssue[] {
  const binding = bindings.get(name);
  if (binding?.kind === kind) return [];
  const fitting = [...bindings].flatMap(([other, { kind: its }]) => (its === kind ? [quoted(other)] : []));
  const others = fitting.length === 0 ? '' : `; those of this kind: ${fitting.join(', ')}`;
  if (binding) {
    const message = `binding \`${name}\` has another kind than ${what}: it is for \`type: ${binding.kind}\`${others}`;
    return [{ path, message }];
  }
  if (name === 'sql') {
    const message = `${what} needs an SQL database: set the option \`bindings: { sql: sqliteDatabase(...) }\` of createOrchestrator, or name another binding${others}`;
    return [{ path: ['type'], message, notConfigured: true }];
  }
  const suggestion = suggestName(name, bindings.keys());
  return [
    {
      path,
      message: `there is no binding \`${name}\` in the option \`bindings\`${others}`,
      ...(suggestion === undefined ? {} : { suggestion }),
    },
  ];
}

function checkKeys(given: JsonObject, kind: string, type: string, action: string): readonly ConfigIssue[] {
  const actions = ACTION_KEYS[kind] as Readonly<Record<string, ActionKeys>>;
  const keys = Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (!keys) {
    const names = Object.keys(actions);
    const message = `\`${action}\` is not an action of \`${type}\`; use ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
    return [{ path: ['action'], message }];
  }
  const { needs, takes = [] } = keys;
  const missing = needs.filter((key) => given[key] === undefined);
  const known = ['type', 'action', 'binding', ...needs, ...takes];
  const odd = Object.keys(given).filter((key) => !known.includes(key) && key in storageConfig().shape);
  return [
    ...missing.map((key) => ({ path: [key], message: `is required for \`${action}\`` })),
    ...odd.map((key) => ({ path: [key], message: `is not for \`${action}\` of \`${type}\`` })),
  ];
}

function checkValues({ format, exportOptions, query, params }: JsonObject, action: string): readonly ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  if (action === 'export' && format === 'text')
    issues.push({ path: ['format'], message: 'must be `json`, `csv` or `ndjson` for `export`' });
  if (action === 'export' && isMap(exportOptions) && exportOptions.headers !== undefined && format !== 'csv')
    issues.push({ path: ['exportOptions', 'headers'], message: 'is for `format: csv` only' });
  if (params !== undefined && typeof query === 'string' && /(^|[^$])\$\{/.test(query))
    issues.push({
      path: ['params'],
      message: 'must be left out where `query` has `${...}`; write the expressions into `params`, or into `query`',
    });
  return issues;
}
