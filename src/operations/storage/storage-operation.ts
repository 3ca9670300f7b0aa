/** The `storage` operation: keyed values (`kv`) and objects (`r2`) in the configured storage or in a binding. */

import * as z from 'zod/mini';
import { isOrchestratorError, messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json.ts';
import { once } from '../../engine/base/once.ts';
import { checkKey, type KvStore, type ObjectStore } from '../../engine/ports/data.ts';
import type { ConfigIssue, Operation, OperationContext } from '../../engine/ports/operation.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { fromStoredObject, toStoredObject } from './object-content.ts';

export type Binding = KvStore | ObjectStore;

// An evaluated value is refused with the message of its schema.
function ttlSchema() {
  const inRange = [z.gte(1, 'must be at least 1'), z.lte(315_360_000, 'must be at most 315360000')];
  return z.number('must be a number').check(z.int('must be a whole number'), ...inRange);
}

const storageConfig = once(() => {
  const nonEmpty = z.optional(z.string('must be a string').check(z.minLength(1, 'must have at least 1 character')));
  return z.strictObject({
    type: z.enum(['kv', 'r2', 'd1']),
    action: z.enum(['get', 'put', 'delete', 'list', 'query', 'execute', 'export']),
    /** The name of a binding. Default `kv` for `kv`, and `objects` for `r2`. */
    binding: nonEmpty,
    key: nonEmpty,
    value: z.optional(z.unknown()),
    /** Seconds. Only for `kv`. */
    ttl: z.optional(ttlSchema()),
    prefix: z.optional(z.string('must be a string')),
    /** The form of the content that `get` of `r2` returns. Default `text`. */
    format: z.optional(z.enum(['text', 'json'], 'must be `text` or `json`')),
    /** The content type of an object that is `put`. Default: derived from the value. */
    contentType: nonEmpty,
  });
});

type StorageConfig = z.output<ReturnType<typeof storageConfig>>;

const KINDS = { kv: 'kv', r2: 'objects' } as const;
const PAGE = 1000;

interface ActionKeys {
  readonly needs: readonly string[];
  readonly takes?: readonly string[];
}

/** The keys of each action in addition to `type`, `action` and `binding`. */
const ACTION_KEYS: Readonly<Record<string, ActionKeys>> = {
  'kv get': { needs: ['key'] },
  'kv put': { needs: ['key', 'value'], takes: ['ttl'] },
  'kv delete': { needs: ['key'] },
  'kv list': { needs: [], takes: ['prefix'] },
  'r2 get': { needs: ['key'], takes: ['format'] },
  'r2 put': { needs: ['key', 'value'], takes: ['contentType'] },
  'r2 delete': { needs: ['key'] },
  'r2 list': { needs: [], takes: ['prefix'] },
};

/** @param bindings - by name. `kv` and `objects` are those of the configured storage, unless the host passed others */
export function storageOperation(parts: {
  readonly bindings: Readonly<Record<string, Binding>>;
  /** Unix ms */
  readonly now: () => number;
}): Operation<StorageConfig> {
  const bindings = new Map(Object.entries(parts.bindings));
  return {
    name: 'storage',
    get config() {
      return storageConfig();
    },
    shows: ['key', 'prefix', 'value'],
    check: (given) => checkConfig(given, bindings),
    needs: (given) => [`binding:${bindingName(given)}`],
    async run(context) {
      const { type } = context.config;
      const binding = bindings.get(bindingName(context.config as JsonObject));
      if (type === 'd1' || !binding || binding.kind !== KINDS[type]) {
        throw new OrchestratorError(
          'NOT_CONFIGURED',
          `storage: binding \`${bindingName(context.config as JsonObject)}\` is not in this process`,
        );
      }
      try {
        return await (binding.kind === 'kv'
          ? runKv(binding, context, parts.now())
          : runObjects(binding, context, parts.now()));
      } catch (thrown) {
        throw toStoreFailure(thrown, context);
      }
    },
  };
}

// The message of a driver may contain addresses, users and queries. Only the log receives it, not everyone who may read executions.
function toStoreFailure(thrown: unknown, { config: given, logger }: OperationContext<StorageConfig>): unknown {
  const known = isOrchestratorError(thrown) ? thrown : undefined;
  if (known && known.code !== 'INTERNAL' && known.code !== 'NOT_CONFIGURED') return known;
  const binding = bindingName(given as JsonObject);
  logger.error({ err: thrown, binding }, 'a store failed');
  const message = `storage: the store of binding \`${binding}\` failed to \`${given.action}\`; the log has its error`;
  return new OrchestratorError(known?.code ?? 'AGENT_FAILED', message, {
    cause: thrown,
    retryable: known?.retryable ?? true,
  });
}

function bindingName({ binding, type }: JsonObject): string {
  if (typeof binding === 'string') return binding;
  return type === 'r2' ? KINDS.r2 : KINDS.kv;
}

function checkConfig(given: JsonObject, bindings: ReadonlyMap<string, Binding>): readonly ConfigIssue[] {
  const { type, action, binding } = given;
  if (type === 'd1') return [notInThisVersion('type', '`type: d1` (SQL) is not in this version; use `kv` or `r2`')];
  if (action === 'export') {
    const message = '`action: export` is not in this version; use `list` and `get`, and a script that writes the text';
    return [notInThisVersion('action', message)];
  }
  if (typeof type !== 'string' || typeof action !== 'string') return [];
  const dynamic = (['type', 'action', 'binding'] as const).filter((key) => String(given[key] ?? '').includes('${'));
  if (dynamic.length > 0)
    return dynamic.map((key) => ({
      path: [key],
      message: 'must be a plain word: it is decided when the definition is loaded',
    }));
  if (type !== 'kv' && type !== 'r2') return [];
  return [...checkBinding(binding, type, bindings), ...checkKeys(given, type, action)];
}

function notInThisVersion(key: string, message: string): ConfigIssue {
  return { path: [key], message, alone: true };
}

function checkBinding(
  name: unknown,
  type: 'kv' | 'r2',
  bindings: ReadonlyMap<string, Binding>,
): readonly ConfigIssue[] {
  if (typeof name !== 'string') return [];
  const binding = bindings.get(name);
  if (!binding) {
    const suggestion = suggestName(name, bindings.keys());
    return [
      {
        path: ['binding'],
        message: `there is no binding \`${name}\``,
        ...(suggestion === undefined ? {} : { suggestion }),
      },
    ];
  }
  if (binding.kind === KINDS[type]) return [];
  return [{ path: ['binding'], message: `binding \`${name}\` has another kind than \`type: ${type}\`` }];
}

function checkKeys(given: JsonObject, type: string, action: string): readonly ConfigIssue[] {
  const keys = ACTION_KEYS[`${type} ${action}`];
  if (!keys) {
    const message = `\`${action}\` is not an action of \`${type}\`; use get, put, delete or list`;
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

async function runKv(kv: KvStore, { config: given }: OperationContext<StorageConfig>, now: number): Promise<Json> {
  switch (given.action) {
    case 'get': {
      const value = await kv.get(keyOf(given), now);
      return { value: value ?? null, found: value !== undefined };
    }
    case 'put': {
      const key = keyOf(given);
      await kv.put(key, (given.value ?? null) as Json, given.ttl === undefined ? undefined : now + given.ttl * 1000);
      return { key, success: true };
    }
    case 'delete': {
      const key = keyOf(given);
      return { key, success: await kv.delete(key) };
    }
    default:
      return listKeys(kv, given.prefix, now);
  }
}

async function runObjects(
  objects: ObjectStore,
  { config: given }: OperationContext<StorageConfig>,
  now: number,
): Promise<Json> {
  switch (given.action) {
    case 'get': {
      const key = keyOf(given);
      const object = await objects.get(key);
      if (!object) throw new OrchestratorError('NOT_FOUND', `storage: there is no object under ${JSON.stringify(key)}`);
      return fromStoredObject(object, given.format ?? 'text');
    }
    case 'put': {
      const key = keyOf(given);
      await objects.put(key, toStoredObject(given.value as Json, given.contentType, now));
      return { key, success: true };
    }
    case 'delete': {
      const key = keyOf(given);
      return { key, success: await objects.delete(key) };
    }
    default:
      return listKeys(objects, given.prefix, now);
  }
}

async function listKeys(store: Binding, prefix: string | undefined, now: number): Promise<Json> {
  const keys = await store.list({ limit: PAGE, now, ...(prefix === undefined ? {} : { prefix }) });
  return { keys, count: keys.length };
}

// A store does not interpret keys, so nothing is escaped. A key that no store accepts is refused.
function keyOf({ key = '' }: StorageConfig): string {
  try {
    return checkKey(key);
  } catch (thrown) {
    throw new OrchestratorError(
      'INVALID_INPUT',
      `storage: ${messageOf(thrown)}; this one has ${key.length} characters`,
    );
  }
}
