/** The world of an engine that keeps its data in a storage: each process has a handle on the same data. */

import { manualClock } from '../../../adapters/clock/manual-clock.ts';
import type { EmbeddedEngineOptions } from '../../../adapters/embedded-engine/engine-options.ts';
import type { ExecutionEngine } from '../../../engine/execution/execution-engine.port.ts';
import type { MaybePromise } from '../../../engine/operation/operation.port.ts';
import type { Storage } from '../../../engine/storage/storage.port.ts';
import { ofProcess } from '../../../testing-kit/processes/process-control.ts';
import type { EngineProcessOptions, EngineWorld } from './engine-world.ts';
import type { World } from './world.ts';

/** The store that the processes of one test share. */
export interface SuiteStore {
  /** Opens a handle for another process on the same data. */
  connect(): MaybePromise<Storage>;
  /** Called after the test, when all handles are closed. */
  end?(): MaybePromise<void>;
}

export interface StorageWorldParts {
  readonly create: () => MaybePromise<SuiteStore>;
  readonly engine: (options: EmbeddedEngineOptions) => ExecutionEngine;
}

export interface StorageProcessOptions extends EngineProcessOptions {
  /** Changes what the process reads from the storage. */
  readonly tamper?: ((storage: Storage) => Storage) | undefined;
}

/** The world of cases about leases and rows. */
export type StorageWorld = World<StorageProcessOptions, Storage>;

/** A short lease, so that another process soon resumes what a dead one ran. */
export const LEASE_MS = 1500;
const SWEEP_MS = 500;
const LONG = { leaseMs: 3_600_000, renewMs: 1_200_000, sweepMs: 600_000 };

export async function openStorageWorld({
  create,
  engine,
}: StorageWorldParts): Promise<EngineWorld<StorageProcessOptions, Storage>> {
  const store = await create();
  const reader = await store.connect();
  const handles: Storage[] = [reader];
  return {
    clock: manualClock(),
    reader,
    takeoverMs: LEASE_MS + 2 * SWEEP_MS,
    async open(process, { tamper = (storage) => storage, longIntervals = false, ...options }) {
      const handle = await store.connect();
      handles.push(handle);
      return {
        engine: engine({ ...(longIntervals ? LONG : { leaseMs: LEASE_MS, sweepMs: SWEEP_MS }), ...options }),
        storage: ofProcess(process, tamper(handle)),
        end: () => handle.close(),
      };
    },
    async close() {
      for (const handle of handles) await handle.close();
      await store.end?.();
    },
  };
}
