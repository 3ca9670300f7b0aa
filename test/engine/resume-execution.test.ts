/** How claimed executions get their definition: by one read, however many are claimed at once. */

import { describe, expect, it } from 'vitest';
import { readEngineOptions } from '../../src/adapters/embedded-engine/engine-options.ts';
import { createEngineState } from '../../src/adapters/embedded-engine/engine-state.ts';
import { resumeExecution } from '../../src/adapters/embedded-engine/resume-execution.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { execution, T0, WORKER } from '../../src/conformance/storage-suite/context.ts';
import { OrchestratorError } from '../../src/engine/base/errors.ts';
import type { EngineHost, InterpretedRun, LoadedDefinition } from '../../src/engine/execution/execution-engine.port.ts';
import type { ClaimedExecution, NewExecution } from '../../src/engine/execution/stored-execution.ts';
import type { Logger } from '../../src/engine/host/logger.port.ts';
import type { Storage, StoredDefinition } from '../../src/engine/storage/storage.port.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };
const DEFINITION: StoredDefinition = { version: execution(1).version, definition: {}, needs: [] };

function claimed(number: number): ClaimedExecution {
  const about = {
    epoch: 1,
    startedAt: T0,
    begun: false,
    recoveries: 0,
    blame: 0,
    cancelRequested: false,
    signals: 0,
    resumedAt: T0,
  };
  return { execution: execution(number), ...about };
}

/** @param read - what the storage answers, by the number of the read */
function setUp(read: (count: number) => StoredDefinition | undefined, restored: LoadedDefinition | string) {
  const clock = manualClock();
  let reads = 0;
  const storage = changeStorage(memoryStorage(), {
    definitions: {
      async get() {
        reads += 1;
        return read(reads);
      },
    },
  });
  const launched: string[] = [];
  const runnable = typeof restored === 'object' && { ...restored, run: ({ id }: NewExecution) => launch(id) };
  const launch = (id: string): InterpretedRun => {
    launched.push(id);
    return { outcome: new Promise(() => {}), stop() {}, abandon() {} };
  };
  const released: string[] = [];
  const failed: (readonly [id: string, afterMs: number])[] = [];
  const commit: Storage['commit'] = (_worker, batch) =>
    batch.map(({ executionId, release }) => {
      if (release && release.dueAt > clock.now()) failed.push([executionId, release.dueAt - clock.now()]);
      else if (release) released.push(executionId);
      return 'stored';
    });
  const host: EngineHost = {
    ...{ storage: changeStorage(storage, { commit }), clock, logger: silent, retentionMs: 1 },
    newWorkerId: () => WORKER,
    restore: () => runnable || restored,
    ended() {},
    left() {},
  };
  const engine = createEngineState(host, readEngineOptions({}), async () => undefined);
  const resume = (worker: string, one: ClaimedExecution, reached: number) =>
    resumeExecution(engine, worker, one, reached);
  return { resume, launched, released, failed, reads: () => reads };
}

const runnable: LoadedDefinition = {
  definition: DEFINITION,
  durability: 'step',
  run: () => {
    throw new Error('nothing runs here');
  },
};

describe('the definition of claimed executions', () => {
  it('is read once for all executions of one claim, and not again', async () => {
    const { resume, launched, reads } = setUp(() => DEFINITION, runnable);
    await Promise.all([1, 2, 3].map((number) => resume(WORKER, claimed(number), T0)));
    await resume(WORKER, claimed(4), T0);
    expect(launched).toEqual([1, 2, 3, 4].map((number) => execution(number).id));
    expect(reads()).toBe(1);
  });

  it('is read again after a read failed', async () => {
    const { resume, launched, failed, reads } = setUp((count) => {
      if (count === 1) throw new OrchestratorError('NOT_CONFIGURED', 'no right to read definitions');
      return DEFINITION;
    }, runnable);
    await Promise.all([1, 2].map((number) => resume(WORKER, claimed(number), T0)));
    expect(failed).toEqual([1, 2].map((number) => [execution(number).id, 1000]));
    await resume(WORKER, claimed(3), T0);
    expect([launched, reads()]).toEqual([[execution(3).id], 2]);
  });

  it('is read again when this process could not run it', async () => {
    const { resume, released, reads } = setUp(() => DEFINITION, 'script `score` is missing');
    await resume(WORKER, claimed(1), T0);
    await resume(WORKER, claimed(2), T0);
    expect([released.length, reads()]).toEqual([2, 2]);
  });
});
