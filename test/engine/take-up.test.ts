/** How claimed executions find what they run: by one look-up of their definition, however many are claimed at once. */

import { describe, expect, it } from 'vitest';
import { createPatience } from '../../src/adapters/engine/patience.ts';
import { createSuspects } from '../../src/adapters/engine/suspects.ts';
import { createTakeUp } from '../../src/adapters/engine/take-up.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { execution, OWNER, T0 } from '../../src/adapters/testing/storage-suite/context.ts';
import type { ClaimedExecution } from '../../src/engine/model/stored-execution.ts';
import type { EngineHost, Runnable } from '../../src/engine/ports/execution-engine.ts';
import type { Logger } from '../../src/engine/ports/logger.ts';
import type { StoredDefinition } from '../../src/engine/ports/storage.ts';
import { manualClock } from '../../src/testing.ts';

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };
const DEFINITION: StoredDefinition = { version: execution(1).version, definition: {}, needs: [] };

function claimed(number: number): ClaimedExecution {
  const about = { epoch: 1, startedAt: T0, begun: false, recoveries: 0, blame: 0, cancelRequested: false, signals: 0 };
  return { execution: execution(number), ...about };
}

/** @param lookUp - what the storage answers, by the number of the look-up */
function place(lookUp: (count: number) => StoredDefinition | undefined, restored: Runnable | string) {
  const clock = manualClock();
  let lookUps = 0;
  const storage = {
    ...memoryStorage(),
    async getDefinition() {
      lookUps += 1;
      return lookUp(lookUps);
    },
  };
  const host: EngineHost = {
    ...{ storage, clock, logger: silent, retentionMs: 1 },
    newOwner: () => OWNER,
    restore: () => restored,
    ended() {},
  };
  const launched: string[] = [];
  const givenBack: string[] = [];
  const failed: (readonly [id: string, afterMs: number])[] = [];
  const take = createTakeUp({
    ...{ host, storage, patiently: createPatience(clock, silent, 0), foreign: new Set<string>() },
    suspects: createSuspects(clock, () => {}),
    othersAtWork: () => 0,
    wake() {},
    giveBack: (_owner, id, _epoch, afterMs) => void failed.push([id, afterMs]),
    writer: {
      write(_owner, { executionId, release }) {
        if (release) givenBack.push(executionId);
        return 'stored';
      },
    },
    launch(held) {
      launched.push(held.execution.id);
      return undefined as never;
    },
  });
  return { take, launched, givenBack, failed, lookUps: () => lookUps };
}

const runnable: Runnable = {
  definition: DEFINITION,
  durability: 'step',
  run: () => {
    throw new Error('nothing is run here');
  },
};

describe('the definition of what is claimed', () => {
  it('is looked up once for all that are claimed together, and not again', async () => {
    const { take, launched, lookUps } = place(() => DEFINITION, runnable);
    await Promise.all([1, 2, 3].map((number) => take(OWNER, claimed(number), T0)));
    await take(OWNER, claimed(4), T0);
    expect(launched).toEqual([1, 2, 3, 4].map((number) => execution(number).id));
    expect(lookUps()).toBe(1);
  });

  it('is looked up again when it could not be read', async () => {
    const { take, launched, failed, lookUps } = place((count) => {
      if (count === 1) throw new Error('the connection is gone');
      return DEFINITION;
    }, runnable);
    await Promise.all([1, 2].map((number) => take(OWNER, claimed(number), T0)));
    expect(failed).toEqual([1, 2].map((number) => [execution(number).id, 1000]));
    await take(OWNER, claimed(3), T0);
    expect([launched, lookUps()]).toEqual([[execution(3).id], 2]);
  });

  it('is looked up again where this process could not run it', async () => {
    const { take, givenBack, lookUps } = place(() => DEFINITION, 'script `score` is missing');
    await take(OWNER, claimed(1), T0);
    await take(OWNER, claimed(2), T0);
    expect([givenBack.length, lookUps()]).toEqual([2, 2]);
  });
});
