/** Who may call, and how much: tokens, usage and limits. */

import { memoryRates } from '../adapters/storage/memory/rates.ts';
import type { RequestKeys } from '../engine/access/request-keys.port.ts';
import { guardLimitStore } from '../engine/access/rules/guard-limit-store.ts';
import { createLimits, type Limits } from '../engine/access/rules/limits.ts';
import { createPlans, type LimitsOptions, type Plans } from '../engine/access/rules/plans.ts';
import { createRequestKeys } from '../engine/access/rules/request-keys.ts';
import { createTokens, type Tokens } from '../engine/access/rules/tokens.ts';
import { createUsage, type UsageReader } from '../engine/access/rules/usage.ts';
import type { IdSource } from '../engine/execution/id.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import type { Logger } from '../engine/host/logger.port.ts';
import type { Storage } from '../engine/storage/storage.port.ts';

export interface Access {
  readonly plans: Plans;
  readonly tokens: Tokens;
  readonly usage: UsageReader;
  readonly limits: Limits;
  readonly requestKeys: RequestKeys;
}

export interface AccessDependencies {
  readonly storage: Storage;
  /** The same for requests that are not mere reads: it waits longer when it is away. */
  readonly patient: Storage;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ids: IdSource;
  readonly brand: string;
}

export function createAccess(options: LimitsOptions | undefined, dependencies: AccessDependencies): Access {
  const { storage, patient, clock, logger, ids, brand } = dependencies;
  const plans = createPlans(options);
  const { store = storage.rates, onStoreFailure = 'open', standardHeaders } = options ?? {};
  const rates = guardLimitStore({ store, fallback: memoryRates(), clock, logger, onStoreFailure });
  return {
    plans,
    tokens: createTokens({ store: storage.tokens, clock, ids, brand, defaultPlan: plans.byDefault }),
    usage: createUsage({ plans, rates, store: storage.usage, clock }),
    limits: createLimits({ plans, rates, clock, logger, standardHeaders }),
    requestKeys: createRequestKeys({
      ...{ documents: patient.documents, clock, logger },
      sharesPromises: storage.capabilities.sharedPromises,
    }),
  };
}
