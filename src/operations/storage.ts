/** The `storage` operation: keyed values (`kv`) and objects (`r2`) in the configured storage or in a binding. */

import * as z from 'zod';
import { isOrchestratorError, messageOf, OrchestratorError } from '../engine/errors.ts';
import type { Json, JsonObject } from '../engine/json.ts';
import { checkKey, type KvStore, type ObjectStore } from '../engine/ports/data.ts';
import type { ConfigIssue, Operation, OperationContext } from '../engine/ports/operation.ts';
import { suggestName } from '../engine/suggest-name.ts';
import { fromStoredObject, toStoredObject } from './storage/object-content.ts';

export type Binding = KvStore | ObjectStore;

const config = z.strictObject({
  type: z.enum(['kv', 'r2', 'd1']),
  action: z.enum(['get', 'put', 'delete', 'list', 'query', 'execute', 'export']),
  /** Name of a binding; default `kv` for `kv` and `objects` for `r2`. */
  binding: z.string().min(1).optional(),
  key: z.string().min(1).optional(),
  value: z.unknown().optional(),
  /** Seconds; `kv` only. */
  ttl: z.int().min(1).max(315_360_000).optional(),
  prefix: z.string().optional(),
  /** How `r2` `get` gives its content; default `text`. */
  format: z.enum(['text', 'json']).optional(),
  /** Of an object that is `put`; default by its value. */
  contentType: z.string().min(1).optional(),
});

type StorageConfig = z.output<typeof config>;

const KINDS = { kv: 'kv', r2: 'objects' } as const;
const PAGE = 1000;

interface ActionKeys {
  readonly needs: readonly string[];
  readonly takes?: readonly string[];
}

/** Which keys each action takes beside `type`, `action` and `binding`. */
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

/** @param bindings - by name; `kv` and `objects` are the configured storage's own unless the host gave others */
export function storageOperation(parts: {
  readonly bindings: Readonly<Record<string, Binding>>;
  /** Unix ms */
  readonly now: () => number;
}): Operation<StorageConfig> {
  const bindings = new Map(Object.entries(parts.bindings));
  return {
    name: 'storage',
    config,
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

// What a driver says may hold addresses, users and queries: that is for the log, and not for whoever may read executions.
function toStoreFailure(
  thrown: unknown,
  { config: given, logger, execution }: OperationContext<StorageConfig>,
): unknown {
  const known = isOrchestratorError(thrown) ? thrown : undefined;
  if (known && known.code !== 'INTERNAL' && known.code !== 'NOT_CONFIGURED') return known;
  const binding = bindingName(given as JsonObject);
  logger.error({ err: thrown, binding, executionId: execution.id, agent: execution.agent }, 'a store failed');
  const message = `storage: the store of binding \`${binding}\` failed to \`${given.action}\`; the log has what it said`;
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
  return [{ path: ['binding'], message: `binding \`${name}\` is of another kind than \`type: ${type}\`` }];
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
  const odd = Object.keys(given).filter((key) => !known.includes(key) && key in config.shape);
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

// Keys mean nothing to a store, so nothing is escaped; what no store could take is refused.
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
