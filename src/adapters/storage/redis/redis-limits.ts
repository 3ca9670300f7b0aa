/** The logs of requests in sliding windows, in Redis. */

import type { LimitStore, RateAnswer, RateWindow } from '../../../engine/access/limit-store.port.ts';
import { logKeyOf, readLogText, usesOf } from '../../../engine/access/request-log.ts';
import { countInLogs, countTogether, logNames, type RateCall } from '../count-together.ts';
import { openRedis, type RedisOptions } from './client.ts';
import { READ_LOGS, REPLACE_LOGS } from './scripts.ts';

/** A `LimitStore` in Redis. */
export interface RedisLimits extends LimitStore {
  /** Closes the connection that the store opened by itself. A passed client stays open. */
  close(): Promise<void>;
}

/** How much longer than its requests count Redis keeps a log, in ms: the clocks of the processes may differ by this. */
const GRACE_MS = 60_000;

/**
 * Counts the requests of callers in Redis 5 or later, for the option `limits.store`: exactly, also for several processes. Use it
 * where the storage should not be asked for each request.
 *
 * @param options - see {@link RedisOptions}
 * @throws TypeError for options that can't be right
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { redisLimits } from 'ensemble-orchestrator/redis';
 *
 * createOrchestrator({ limits: { store: redisLimits({ url: 'redis://localhost:6379', namespace: 'app' }) } });
 * ```
 */
export function redisLimits(options: RedisOptions): RedisLimits {
  const { namespace, ready, run, close } = openRedis('redisLimits', options);
  // What is in braces decides where a cluster keeps a key: one step can change all logs of a store.
  const nameOf = (window: RateWindow) => `{${namespace}}:requests:${logKeyOf(window)}`;

  const read = async (names: readonly string[]) => (await run(READ_LOGS, names)) as readonly string[];

  /** @returns undefined if another process has changed a log meanwhile: then nothing was stored */
  const tryCount = async (calls: readonly RateCall[]): Promise<readonly RateAnswer[] | undefined> => {
    const names = logNames(calls, nameOf);
    const stored = await read(names);
    const texts = new Map(names.map((name, i) => [name, stored[i] as string]));
    const { answers, logs } = countInLogs(calls, nameOf, (name) => texts.get(name));
    const now = Math.min(...calls.map((call) => call.now));
    const given = logs.flatMap(({ text, endsAt }, i) => [
      stored[i] as string,
      text,
      Math.max(1, Math.ceil(endsAt - now)) + GRACE_MS,
    ]);
    return (await run(REPLACE_LOGS, names, ...given)) === 1 ? answers : undefined;
  };

  return {
    ready,
    take: countTogether(async (calls) => {
      // It ends: each time, another process has counted.
      for (;;) {
        const answers = await tryCount(calls);
        if (answers) return answers;
      }
    }),
    async peek(windows, now) {
      const stored = await read(windows.map(nameOf));
      return usesOf(windows, stored.map(readLogText), now);
    },
    close,
  };
}
