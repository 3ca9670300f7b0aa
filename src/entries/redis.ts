/**
 * The public names for keyed values and limits in Redis.
 *
 * @module ensemble-orchestrator/redis
 */

export type { RedisClient, RedisOptions } from '../adapters/storage/redis/client.ts';
export { type RedisKv, redisKv } from '../adapters/storage/redis/redis-kv.ts';
export { type RedisLimits, redisLimits } from '../adapters/storage/redis/redis-limits.ts';
