/** The limits of ensembles, as the orchestrator stores and shows them. */

import { once } from '../../engine/base/once.ts';
import type { Execution, PendingWait } from '../../engine/execution/execution.ts';
import type { AttachedEngine } from '../../engine/execution/execution-engine.port.ts';
import type { ExecutionReader, ExecutionStore } from '../../engine/execution/execution-store.port.ts';
import { type FlowLimit, shownName } from '../../engine/execution/limits/flow-limit.ts';
import type { NewExecution } from '../../engine/execution/stored-execution.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { Logger } from '../../engine/host/logger.port.ts';
import type { LoadedEnsemble } from '../definitions/load-definitions.ts';

/** Adds the limits that hold an execution up to what it waits for. @param now - Unix ms */
export async function withLimitWaits(
  record: Execution,
  { limitWaits }: Pick<ExecutionReader, 'limitWaits'>,
  now: number,
): Promise<Execution> {
  if (record.status !== 'queued' && record.status !== 'waiting') return record;
  const waits = (await limitWaits(record.id, now)).map(({ name, since, ...wait }): PendingWait => {
    // A priority makes it due earlier.
    const from = Math.max(since, record.createdAt);
    return { kind: 'limit', name: shownName(name), ...wait, since: from };
  });
  return waits.length === 0 ? record : { ...record, waitingFor: [...waits, ...record.waitingFor] };
}

const DAY_MS = 86_400_000;

/** Closes the rates of an execution that learn from answers. Never throws: without it, the next execution asks too early. */
export function createLearning({
  storage,
  clock,
  logger,
}: {
  readonly storage: { readonly executions: Pick<ExecutionStore, 'closeLimits'> };
  readonly clock: Clock;
  readonly logger: Logger;
}) {
  return ({ id, limits = [] }: Pick<NewExecution, 'id' | 'limits'>, retryAfterMs: number): void => {
    const learning = limits.filter(({ learn }) => learn);
    if (learning.length === 0) return;
    const until = clock.now() + Math.min(retryAfterMs, DAY_MS);
    const close = async () => storage.executions.closeLimits(learning, until);
    close().catch((err: unknown) => logger.warn({ err, executionId: id }, 'a rate could not be closed'));
  };
}

export interface LimitNumbers {
  /** Stores numbers for all keys: they hold at once for what is queued, and not only for what is started after that. */
  put(limits: readonly FlowLimit[]): Promise<void>;
  /** Does so with those of the ensembles in code, once. Never rejects: each start has the numbers too. */
  putAll(): Promise<void>;
}

export function createLimitNumbers(dependencies: {
  readonly ensembles: ReadonlyMap<string, LoadedEnsemble>;
  readonly storage: { readonly executions: Pick<ExecutionStore, 'putLimits'> };
  service(): { readonly engine: Pick<AttachedEngine, 'wake'> };
  readonly clock: Clock;
  readonly logger: Logger;
}): LimitNumbers {
  const { ensembles, storage, clock, logger } = dependencies;
  const put = async (limits: readonly FlowLimit[]) => {
    if (limits.length === 0) return;
    await storage.executions.putLimits(limits);
    dependencies.service().engine.wake?.();
  };
  return {
    put,
    putAll: once(async () => {
      const limits = [...ensembles.values()].flatMap(({ compiled }) => compiled.limits?.constant(clock.now()) ?? []);
      await put(limits).catch((err: unknown) => logger.warn({ err }, 'the numbers of limits could not be stored'));
    }),
  };
}
