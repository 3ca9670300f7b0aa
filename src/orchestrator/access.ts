/** Who may call, and how much: tokens, usage and limits. */

import { guardLimitStore } from '../engine/access/guard-limit-store.ts';
import { createLimits, type Limits } from '../engine/access/limits.ts';
import { createPlans, type LimitsOptions, type Plans } from '../engine/access/plans.ts';
import { createTokens, type Tokens } from '../engine/access/tokens.ts';
import { createUsage, type UsageReader } from '../engine/access/usage.ts';
import type { IdSource } from '../engine/model/id.ts';
import type { Clock } from '../engine/ports/clock.ts';
import type { Logger } from '../engine/ports/logger.ts';
import type { Storage } from '../engine/ports/storage.ts';

export interface Access {
  readonly plans: Plans;
  readonly tokens: Tokens;
  readonly usage: UsageReader;
  readonly limits: Limits;
}

export function createAccess(parts: {
  readonly options: LimitsOptions | undefined;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ids: IdSource;
  readonly brand: string;
}): Access {
  const { options, storage, clock, logger, ids, brand } = parts;
  const plans = createPlans(options);
  const { store = storage.rates, onStoreFailure = 'open' } = options ?? {};
  const rates = guardLimitStore({ store, clock, logger, onStoreFailure });
  return {
    plans,
    tokens: createTokens({ store: storage.tokens, clock, ids, brand, defaultPlan: plans.byDefault }),
    usage: createUsage({ plans, rates, store: storage.usage, clock }),
    limits: createLimits({ plans, rates, clock, logger }),
  };
}
