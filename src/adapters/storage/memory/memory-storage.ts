/** The storage in the memory of one process. It is the default, and the reference for all other storages. */

import { flag, readOptions, wholeNumber } from '../../../engine/base/read-options.ts';
import type { Storage, StoredDefinition, StoredSchedule } from '../../../engine/storage/storage.port.ts';
import { createClaiming } from './claim.ts';
import { createCommit } from './commit.ts';
import { memoryKv, memoryObjects } from './data.ts';
import { memoryDocuments } from './documents.ts';
import { createEnding } from './ending.ts';
import { createMemoryState, toChargeKey } from './memory-state.ts';
import { createPausing } from './pauses.ts';
import { memoryRates } from './rates.ts';
import { readExecutions } from './read-executions.ts';
import { memorySignals } from './signals.ts';
import { memoryTokens } from './tokens.ts';
import { memoryWorkers } from './workers.ts';

export interface MemoryStorageOptions {
  /**
   * How many finished executions are kept, the newest first, and how many deliveries that are not pending. Unfinished executions and
   * pending deliveries are always kept. Default 10,000.
   */
  readonly keep?: number | undefined;
  /**
   * About how many bytes executions may take, with their inputs, outputs, steps and signals. The oldest finished
   * executions are dropped to stay below it. When unfinished executions take more, starts are refused with OVERLOADED.
   * Default 256 MiB.
   */
  readonly keepBytes?: number | undefined;
  /**
   * Whether several orchestrators work on it. Then they watch each other: when one no longer renews its lease, another
   * continues its executions. Default false: a single orchestrator, which needs no timers for this.
   */
  readonly shared?: boolean | undefined;
}

const DEFAULT_KEEP_BYTES = 256 * 1024 * 1024;

/** @throws TypeError when `keep` or `keepBytes` is not a whole number of at least 0 */
export function memoryStorage(options: MemoryStorageOptions = {}): Storage {
  const given = readOptions('memoryStorage', options, {
    keep: wholeNumber(0),
    keepBytes: wholeNumber(0),
    shared: flag,
  });
  const { keep = 10_000, keepBytes = DEFAULT_KEEP_BYTES, shared = false } = given;
  const documents = memoryDocuments();
  const state = createMemoryState(keep, keepBytes, documents);
  const { put: _, ...deliveries } = state.deliveries;
  const definitions = new Map<string, StoredDefinition>();
  const schedules = new Map<string, StoredSchedule>();
  return {
    capabilities: { sharedPromises: true, timers: true, groupedCommits: false, shared },
    tokens: memoryTokens(),
    kv: memoryKv(),
    objects: memoryObjects(),
    commit: createCommit(state),
    workers: memoryWorkers(state),
    executions: { ...createClaiming(state), ...createPausing(state), ...createEnding(state), ...readExecutions(state) },
    signals: memorySignals(state),
    tallies: { fold: state.tallies.fold, read: state.tallies.read },
    documents,
    deliveries,
    rates: memoryRates(),
    usage: {
      charged: (account, period) => state.charges.get(toChargeKey(account, period)) ?? 0,
      running: state.slots.taken,
    },
    state: {
      read: (ensemble) => state.states.get(ensemble),
      write(ensemble, { expectedVersion, value, updatedAt }) {
        if ((state.states.get(ensemble)?.version ?? 0) !== expectedVersion) return false;
        state.states.set(ensemble, { value, version: expectedVersion + 1, updatedAt });
        return true;
      },
    },
    schedules: {
      read: (name) => schedules.get(name),
      advance(name, { expectedVersion, value, updatedAt }) {
        if ((schedules.get(name)?.version ?? 0) !== expectedVersion) return false;
        schedules.set(name, { value, version: expectedVersion + 1, updatedAt });
        return true;
      },
    },
    definitions: {
      put(definition) {
        if (!definitions.has(definition.version)) definitions.set(definition.version, definition);
      },
      get: (version) => definitions.get(version),
    },
    close() {},
  };
}
