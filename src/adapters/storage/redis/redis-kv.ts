/** Keyed values in Redis. */

import { messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json } from '../../../engine/base/json/json.ts';
import { checkKey, isPlainText, type KeyPage, type KvStore } from '../../../engine/storage/data.port.ts';
import { compareKeys } from '../compare-bytes.ts';
import { sweepSometimes } from '../sweep-sometimes.ts';
import { openRedis, type RedisOptions } from './client.ts';
import { DELETE, GET, LIST, PUT, SWEEP } from './scripts.ts';

/** A `KvStore` in Redis. */
export interface RedisKv extends KvStore {
  /** Closes the connection that the store opened by itself. A passed client stays open. */
  close(): Promise<void>;
}

/** How many expired values a read deletes in passing. */
const MAX_SWEPT = 1000;

/**
 * Keyed values in Redis 5 or later, for bindings of `operation: storage`. The clock of the orchestrator decides when a value expires.
 * Redis deletes the value later.
 *
 * @param options - see {@link RedisOptions}
 * @throws TypeError for options that can't be right
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { redisKv } from 'ensemble-orchestrator/redis';
 *
 * const sessions = redisKv({ url: 'redis://localhost:6379', namespace: 'app' });
 * createOrchestrator({ bindings: { sessions } });
 * ```
 */
export function redisKv(options: RedisOptions): RedisKv {
  const { namespace, ready, run, close } = openRedis('redisKv', options);
  // What is in braces decides where a cluster keeps a key: all keys of a store are in one place.
  const keys = `{${namespace}}:keys`;
  const expiries = `{${namespace}}:expiries`;
  const values = `{${namespace}}:value:`;

  const onKey = (script: string, key: string, ...given: readonly (string | number)[]) =>
    run(script, [keys, expiries, values + checkKey(key)], key, ...given);

  const sweepExpired = sweepSometimes(MAX_SWEPT, async (now) =>
    Number(await run(SWEEP, [keys, expiries], now, values)),
  );

  return {
    kind: 'kv',
    ready,
    async get(key, now) {
      const text = await onKey(GET, key, now);
      sweepExpired(now);
      return text === null || text === undefined ? undefined : parseValue(text, key);
    },
    async put(key, value, expiresAt) {
      await onKey(PUT, key, JSON.stringify(value), expiresAt ?? '');
    },
    delete: async (key) => Number(await onKey(DELETE, key)) > 0,
    async list({ prefix: begin = '', limit, after, now }: KeyPage) {
      if (!isPlainText(begin)) return [];
      const found: string[] = [];
      let from: string | undefined = after !== undefined && compareKeys(after, begin) >= 0 ? after : '';
      while (from !== undefined && found.length < limit) {
        const given = [begin, from, limit - found.length, now, values];
        const [page, next] = (await run(LIST, [keys, expiries], ...given)) as [string[], string];
        found.push(...page);
        from = next === '' ? undefined : next;
      }
      sweepExpired(now);
      return found;
    },
    close,
  };
}

function parseValue(text: unknown, key: string): Json {
  try {
    return JSON.parse(String(text)) as Json;
  } catch (cause) {
    const message = `redisKv: the value of key ${key} is damaged: it is not JSON`;
    throw new OrchestratorError('INTERNAL', message, { cause: messageOf(cause), details: { row: `key ${key}` } });
  }
}
