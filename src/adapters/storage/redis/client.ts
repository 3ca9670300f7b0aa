/** The connection to Redis: one that the host passes, or one of its own through the optional package `ioredis`. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/base/errors.ts';

/** What the store needs of a client. An instance of `ioredis` has it. */
export interface RedisClient {
  /** Runs a script in Redis: first its keys, then its arguments. */
  eval(script: string, keyCount: number, ...keysAndArguments: (string | number)[]): Promise<unknown>;
}

/** A connection that the store opens, and must close. */
export interface OwnRedisClient extends RedisClient {
  disconnect(): void;
}

/** Longer than a command of this store takes on a server that answers. */
const COMMAND_TIMEOUT_MS = 10_000;
/** How often a command is sent again after its connection broke, before it fails. */
const MAX_RETRIES = 2;

/** @throws NOT_CONFIGURED when `ioredis` can't be loaded, or refuses the address */
export async function openClient(url: string): Promise<OwnRedisClient> {
  const { Redis } = await import('ioredis').catch((cause: unknown) => {
    const message = "redisKv: the package ioredis is missing, or can't be loaded; install it: `npm install ioredis@6`";
    throw new OrchestratorError('NOT_CONFIGURED', message, { cause, details: { driver: 'ioredis' } });
  });
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: COMMAND_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: MAX_RETRIES,
  });
  // A failure is reported by the commands that it affects. Without a listener, ioredis prints it.
  client.on('error', () => undefined);
  return client;
}

/** Settings that no repetition repairs: the password, the rights, the kind of server, the type of a key. */
const MISCONFIGURED = /^(NOAUTH|WRONGPASS|NOPERM|WRONGTYPE|MOVED|CROSSSLOT|ERR)\b/;

/** The failure that an error of the client stands for. The message has no address, which may contain a password. */
export function toRedisFailure(thrown: unknown): OrchestratorError {
  if (isOrchestratorError(thrown)) return thrown;
  const message = messageOf(thrown);
  const reply = /^[A-Z]+\b/.exec(message)?.[0] ?? '';
  if (MISCONFIGURED.test(message)) {
    const text = `redisKv: Redis refuses the command with ${reply}; check the user, its rights on the prefix, and that the prefix is used by this store only`;
    return new OrchestratorError('NOT_CONFIGURED', text, { cause: thrown });
  }
  const text = reply === '' ? 'redisKv: Redis did not answer' : `redisKv: Redis is not ready: ${reply}`;
  return new OrchestratorError('OVERLOADED', text, { cause: thrown, retryable: true });
}
