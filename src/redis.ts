/**
 * The public names for keyed values in Redis.
 *
 * @module ensemble-orchestrator/redis
 */

export type { RedisClient } from './adapters/storage/redis/client.ts';
export { type RedisKv, type RedisKvOptions, redisKv } from './adapters/storage/redis/redis-kv.ts';
