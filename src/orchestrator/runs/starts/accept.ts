/** Accepts a start: ensemble, input and options -> the new execution, and how the engine begins it. */

import { type Charge, monthOf } from '../../../engine/access/quota.ts';
import type { Plans } from '../../../engine/access/rules/plans.ts';
import type { Principal } from '../../../engine/access/token.ts';
import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { Json } from '../../../engine/base/json/json.ts';
import { createCallerSignals } from '../../../engine/base/time/caller-signal.ts';
import { toMs } from '../../../engine/base/time/duration.ts';
import { toTraceContext } from '../../../engine/events/trace-context.ts';
import type { AttachedEngine, BeginOptions } from '../../../engine/execution/execution-engine.port.ts';
import type { IdSource } from '../../../engine/execution/id.ts';
import { toStoredKey, toTags } from '../../../engine/execution/start-once.ts';
import type { NewExecution } from '../../../engine/execution/stored-execution.ts';
import type { Clock } from '../../../engine/host/clock.port.ts';
import type { Tracing } from '../../../engine/host/telemetry.port.ts';
import type { MaybePromise } from '../../../engine/operation/operation.port.ts';
import type {
  RecordReader,
  Storage,
  StoredDefinition,
  TransactionStore,
} from '../../../engine/storage/storage.port.ts';
import type { LoadedEnsemble, LoadedTraffic } from '../../definitions/load-definitions.ts';
import { checkExecuteOptions } from '../../options/options.ts';
import { traceStart } from '../../telemetry.ts';
import { type ExecuteOptions, type Origin, toTrigger } from './execute-options.ts';
import { checkPlace, type NewExecutionId } from './execution-ids.ts';
import { findAccepted } from './find-first.ts';
import { newExecution } from './new-execution.ts';

export const NO_OPTIONS: ExecuteOptions = Object.freeze({});

/** A version of an ensemble for one start. */
export interface Chosen {
  readonly ensemble: LoadedEnsemble;
  readonly id: string;
}

export interface Acceptance {
  /** @throws TypeError for a wrong option */
  accept(
    ensemble: LoadedEnsemble,
    input: Json,
    options: ExecuteOptions,
    /** Whether its caller waits for the end. Otherwise the execution gets a trace of its own. */
    isAwaited: boolean,
    origin?: Origin,
    /** The id that it gets, if its options name none. Default: a new one. */
    newId?: string,
  ): NewExecution;
  /**
   * The version of an ensemble that a start runs, and the id that it gets then.
   * @throws NOT_CONFIGURED if this process lacks what the version needs
   */
  choose(ensemble: LoadedEnsemble, traffic: LoadedTraffic, input: unknown, options: ExecuteOptions): Promise<Chosen>;
  beginOptions(
    ensemble: LoadedEnsemble,
    execution: NewExecution,
    options: ExecuteOptions,
    mayQueue: boolean,
  ): BeginOptions;
  /** What a start costs its caller. */
  chargeOf(principal: Principal | undefined, createdAt: number): Charge | undefined;
}

export function createAcceptance(dependencies: {
  readonly clock: Clock;
  readonly storage: Storage;
  readonly ids: IdSource;
  readonly newId: NewExecutionId;
  readonly plans: Plans;
  readonly engine: AttachedEngine;
  readonly records: RecordReader;
  restore(definition: StoredDefinition, ensemble: string): MaybePromise<LoadedEnsemble | string>;
  readonly tracing: Tracing | undefined;
}): Acceptance {
  const { clock, storage, ids, newId, plans, engine, records, restore, tracing } = dependencies;
  const toCallerSignal = createCallerSignals();
  let month = monthOf(0);

  const chargeOf: Acceptance['chargeOf'] = (principal, createdAt) => {
    if (!principal) return undefined;
    const { executions: limit, concurrent: slots } = plans.limitsOf(principal.plan);
    if (createdAt < month.start || createdAt >= month.end) month = monthOf(createdAt);
    return { account: principal.tokenId, period: month.name, limit, slots };
  };
  return {
    async choose(ensemble, traffic, input, options) {
      checkExecuteOptions(options);
      const { name } = ensemble.compiled;
      const idempotencyKey = toStoredKey(options);
      const id = options.id ?? newId(name, clock.now());
      // A start that is repeated is read as the first one was, whatever its version is now.
      const first = await findAccepted(records, { id, idempotencyKey });
      const definition = first?.ensemble === name ? await storage.definitions.get(first.version) : undefined;
      const loaded = definition && (await restore(definition, name));
      if (loaded && typeof loaded !== 'string') return { ensemble: loaded, id };
      return { ensemble: traffic.choose(input, options.id ?? idempotencyKey ?? id), id };
    },
    accept(ensemble, input, options, isAwaited, origin, made) {
      if (options !== NO_OPTIONS) checkExecuteOptions(options);
      const createdAt = clock.now();
      if (options.id !== undefined) checkPlace(options.id, storage, engine);
      const { name } = ensemble.compiled;
      const id = options.id ?? made ?? newId(name, createdAt);
      let trigger = toTrigger(options, origin);
      if (ensemble.mark) trigger = { ...trigger, traffic: ensemble.mark };
      if (tracing || options.traceparent !== undefined) {
        const caller = toTraceContext(options.traceparent, options.tracestate);
        trigger = traceStart(tracing, { executionId: id, ensemble: name, trigger, caller, isDetached: !isAwaited });
      }
      const beginning = {
        id,
        trigger,
        input,
        seed: ids.seed(),
        createdAt,
        idempotencyKey: toStoredKey(options),
        tags: toTags(options.tags),
      };
      return newExecution(ensemble.compiled, beginning, {
        timeoutMs: options.timeout === undefined ? undefined : toMs(options.timeout),
      });
    },
    beginOptions: ({ expects }, { createdAt }, { signal, principal, overLimit = 'queue' }, mayQueue) => ({
      mayQueue,
      signal: signal && toCallerSignal(signal),
      expects,
      charge: chargeOf(principal, createdAt),
      refuseWithoutSlot: overLimit === 'refuse',
    }),
    chargeOf,
  };
}

/** Undefined without a transaction. */
export type OpenTransaction = (transaction: unknown) => Promise<TransactionStore | undefined>;

/** @returns a function that opens the transaction of a call; undefined if it has none. @throws NOT_CONFIGURED, INVALID_REQUEST */
export function createOpenTransaction(
  storage: Pick<Storage, 'within'>,
  engine: () => Pick<AttachedEngine, 'takesTransactions'>,
): OpenTransaction {
  return async (transaction) => {
    if (transaction === undefined) return undefined;
    if (storage.within && engine().takesTransactions) return storage.within(transaction);
    const message =
      'the storage or the engine of this orchestrator can not write in a transaction of the caller; `postgresStorage` and `sqliteStorage` can';
    throw new OrchestratorError('NOT_CONFIGURED', message);
  };
}

/** @throws INVALID_REQUEST for what can't be done before the caller commits */
export function refuseWithin({ signal, dryRun }: ExecuteOptions, isAwaited: boolean): void {
  const what = isAwaited ? '`execute`, which waits for the end' : signal ? '`signal`' : dryRun ? '`dryRun`' : undefined;
  if (what === undefined) return;
  const message = `\`transaction\` can't be used with ${what}: the execution is there when the transaction is committed; use \`start\``;
  throw new OrchestratorError('INVALID_REQUEST', message);
}
