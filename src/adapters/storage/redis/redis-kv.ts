/** Keyed values in Redis. */

import { refuseUnknownKeys } from '../../../engine/base/refuse-unknown-keys.ts';
import { messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json } from '../../../engine/base/json.ts';
import { checkKey, isPlainText, type KeyPage, type KvStore } from '../../../engine/ports/data.ts';
import { compareKeys } from '../compare-bytes.ts';
import { type OwnRedisClient, openClient, type RedisClient, toRedisFailure } from './client.ts';
import { DELETE, GET, LIST, PUT, SWEEP } from './scripts.ts';
import { sweepSometimes } from '../sweep-sometimes.ts';

/** Where the values are. Pass `client` or `url`. */
export interface RedisKvOptions {
  /** A client of your own, such as `new Redis()` of `ioredis`. You close it. */
  readonly client?: RedisClient;
  /** The address of a server, such as `redis://user:password@host:6379/0`. Needs the package `ioredis`. */
  readonly url?: string;
  /** Separates apps that share one server: the beginning of the names of all keys, without `{` and `}`. Default `ensemble`. */
  readonly namespace?: string;
}

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
 * @param options - see {@link RedisKvOptions}
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
export function redisKv(options: RedisKvOptions): RedisKv {
  const { namespace = 'ensemble' } = checkOptions(options);
  const connection = connectionOf(options);
  // What is in braces decides where a cluster keeps a key: all keys of a store are in one place.
  const keys = `{${namespace}}:keys`;
  const expiries = `{${namespace}}:expiries`;
  const values = `{${namespace}}:value:`;

  const run = async (script: string, names: readonly string[], ...given: readonly (string | number)[]) => {
    try {
      const client = await connection.client();
      return await client.eval(script, names.length, ...names, ...given);
    } catch (thrown) {
      throw toRedisFailure(thrown);
    }
  };
  const onKey = (script: string, key: string, ...given: readonly (string | number)[]) =>
    run(script, [keys, expiries, values + checkKey(key)], key, ...given);

  const sweepExpired = sweepSometimes(MAX_SWEPT, async (now) =>
    Number(await run(SWEEP, [keys, expiries], now, values)),
  );

  return {
    kind: 'kv',
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
    close: () => connection.close(),
  };
}

function checkOptions(options: RedisKvOptions): RedisKvOptions {
  refuseUnknownKeys(options, ['client', 'url', 'namespace'], 'redisKv');
  const { client, url, namespace } = options;
  if ((client === undefined) === (url === undefined)) throw new TypeError('redisKv: pass either `client` or `url`');
  if (client !== undefined && typeof client?.eval !== 'function') {
    throw new TypeError('redisKv: `client` must have the method `eval` of ioredis');
  }
  if (url !== undefined && !/^rediss?:\/\//.test(url)) {
    throw new TypeError('redisKv: `url` must begin with `redis://` or `rediss://`');
  }
  if (namespace !== undefined && !/^[^{}]{1,200}$/.test(namespace)) {
    throw new TypeError('redisKv: `namespace` must be text of 1 to 200 characters without `{` and `}`');
  }
  return options;
}

interface Connection {
  client(): Promise<RedisClient>;
  close(): Promise<void>;
}

function connectionOf({ client, url = '' }: RedisKvOptions): Connection {
  if (client) return { client: async () => client, close: async () => undefined };
  let own: Promise<OwnRedisClient> | undefined;
  let closed = false;
  return {
    client() {
      if (closed) throw new OrchestratorError('OVERLOADED', 'redisKv: the store was closed');
      // A package that could not be loaded may be there at the next call.
      own ??= openClient(url).catch((thrown: unknown) => {
        own = undefined;
        throw thrown;
      });
      return own;
    },
    async close() {
      closed = true;
      const opened = await own?.catch(() => undefined);
      opened?.disconnect();
    },
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
