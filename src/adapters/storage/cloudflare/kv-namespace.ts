/** Keyed values in Workers KV. */

import { messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json } from '../../../engine/base/json/json.ts';
import { checkKey, isPlainText, type KeyPage, type KvStore, MAX_KEY_BYTES } from '../../../engine/storage/data.port.ts';
import { readPages } from '../bounded-reads.ts';
import { compareKeys } from '../compare-bytes.ts';
import { withBindingErrors } from './failure.ts';

/** What the store needs of a namespace. The binding of a Worker has it. */
export interface KvNamespaceBinding {
  getWithMetadata(key: string, options: { type: 'text' }): Promise<{ value: string | null; metadata: unknown }>;
  put(key: string, value: string, options: { expiration?: number; metadata?: unknown }): Promise<void>;
  delete(key: string): Promise<void>;
  list(options: { prefix: string; limit: number; cursor?: string }): Promise<KvNamespacePage>;
}

export interface KvNamespacePage {
  readonly keys: readonly { readonly name: string; readonly metadata?: unknown }[];
  readonly list_complete: boolean;
  readonly cursor?: string;
}

/** How long after its expiry KV itself may delete a value, in ms. Until then, only the caller's clock decides. KV needs 60 s. */
const GRACE_MS = 3_600_000;
/** Ends the names of keys that KV does not have. */
const MARK = '\u0001';
/** The most keys that KV lists at once. */
const PAGE = 1000;

/**
 * Keyed values in Workers KV, for bindings of `operation: storage`. KV is eventually consistent: what is stored or deleted may be seen
 * elsewhere after a minute or later, and a key takes one write a second.
 *
 * @param namespace - the binding of the Worker, such as `env.CACHE`
 * @throws TypeError if it is not a namespace
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { kvNamespace, type KvNamespaceBinding } from 'ensemble-orchestrator/cloudflare';
 *
 * const create = (env: { CACHE: KvNamespaceBinding }) => createOrchestrator({ bindings: { cache: kvNamespace(env.CACHE) } });
 * ```
 */
export function kvNamespace(namespace: KvNamespaceBinding): KvStore {
  for (const method of ['getWithMetadata', 'put', 'delete', 'list'] as const) {
    if (typeof namespace?.[method] !== 'function') {
      throw new TypeError('kvNamespace: pass the KV namespace of the Worker, such as `env.CACHE`');
    }
  }
  const call = <T>(run: () => Promise<T>, signal?: AbortSignal) => withBindingErrors('kvNamespace', run, signal);
  const listed = lister(namespace);
  return {
    kind: 'kv',
    get: (key, now) =>
      call(async () => {
        const { value, metadata } = await namespace.getWithMetadata(toName(checkKey(key)), { type: 'text' });
        return value === null || isExpired(metadata, now) ? undefined : parse(value, key);
      }),
    put: (key, value, expiresAt) =>
      call(async () => {
        const expiry = expiresAt !== undefined && {
          metadata: { expiresAt },
          expiration: Math.ceil((Math.max(expiresAt, Date.now()) + GRACE_MS) / 1000),
        };
        await namespace.put(toName(checkKey(key)), JSON.stringify(value), expiry || {});
      }),
    delete: (key) =>
      call(async () => {
        const name = toName(checkKey(key));
        const { value } = await namespace.getWithMetadata(name, { type: 'text' });
        if (value !== null) await namespace.delete(name);
        return value !== null;
      }),
    list: (page) => call(() => listed(page), page.signal),
  };
}

/**
 * Lists keys after a key, which KV can't: it only continues where its own page ended. So the place of the last page is remembered, and
 * any other list after a key begins at the first key of its prefix.
 */
function lister(namespace: KvNamespaceBinding): (page: KeyPage) => Promise<readonly string[]> {
  let last: { readonly prefix: string; readonly after: string; readonly cursor: string } | undefined;
  return async ({ prefix = '', after, limit, now, signal }) => {
    if (!isPlainText(prefix) || new TextEncoder().encode(prefix).length > MAX_KEY_BYTES) return [];
    const isNext = last?.prefix === prefix && last.after === after;
    let cursor = isNext ? last?.cursor : undefined;
    const keys: string[] = [];
    await readPages<string>(signal, async () => {
      const size = Math.min(after === undefined || isNext ? limit - keys.length : PAGE, PAGE);
      const found = await namespace.list({ prefix, limit: size, ...(cursor !== undefined && { cursor }) });
      const live = found.keys.filter(({ metadata }) => !isExpired(metadata, now)).map(({ name }) => toKey(name));
      keys.push(
        ...live.filter((key) => key.startsWith(prefix) && (after === undefined || compareKeys(key, after) > 0)),
      );
      cursor = found.list_complete ? undefined : found.cursor;
      return { found: found.keys.length, place: keys.length >= limit ? undefined : cursor };
    });
    const end = keys.at(limit - 1);
    // The cursor is the place after the last key of KV's page, which may have had more keys than are returned.
    last =
      cursor !== undefined && end !== undefined && keys.length === limit ? { prefix, after: end, cursor } : undefined;
    return keys.slice(0, limit);
  };
}

// KV has no keys `.` and `..`. A text that consists of them and further U+0001 gets one more, which keeps the order.
function toName(key: string): string {
  if (!isDots(key)) return key;
  if (key.length < MAX_KEY_BYTES) return key + MARK;
  const message = 'kvNamespace: Workers KV has no name for a key of dots and 510 or more U+0001';
  throw new OrchestratorError('INVALID_REQUEST', message);
}

function toKey(name: string): string {
  return isDots(name) ? name.slice(0, -1) : name;
}

/** Whether a text is one or two dots, and then marks only. */
function isDots(text: string): boolean {
  return text.startsWith('.') && ['.', '..'].includes(text.replaceAll(MARK, '')) && /^\.+[^.]*$/.test(text);
}

function isExpired(metadata: unknown, now: number): boolean {
  const expiresAt = (metadata as { expiresAt?: unknown } | null | undefined)?.expiresAt;
  return typeof expiresAt === 'number' && expiresAt <= now;
}

function parse(text: string, key: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (thrown) {
    const message = `kvNamespace: the value of key ${key} is not JSON; this store must have the namespace for itself`;
    throw new OrchestratorError('INTERNAL', message, { cause: messageOf(thrown), details: { row: `key ${key}` } });
  }
}
