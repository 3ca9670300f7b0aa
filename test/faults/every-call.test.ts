/** Every public operation, with each call of the storage failing in each way. The test is exhaustive, and runs in memory. */

import { afterAll, describe, expect, it } from 'vitest';
import { isOrchestratorError } from '../../src/engine/base/errors.ts';
import { MODES, type Mode, StorageFault } from './faulty-storage.ts';
import type { Operation } from './operation.ts';
import { OPERATIONS } from './operations.ts';
import { allEnded, checkInvariants, makeRig, PLACES, type Place, WAIT_LIMIT_MS } from './rig.ts';

let cases = 0;
const began = performance.now();

/** @returns false when the operation makes fewer than `at` calls */
async function tryOne(operation: Operation, place: Place, at: number, mode: Mode): Promise<boolean> {
  const rig = await makeRig(place, operation.options ?? { ensembles: [] });
  const prepared = (await operation.prepare?.(rig)) ?? '';
  rig.faults.arm(at, mode);
  const seen = watch(operation.act(rig, prepared));
  await rig.until(() => seen.over);
  const { failed } = rig.faults;
  const reached = rig.faults.calls >= at;
  rig.faults.heal();
  if (!reached) return false;
  // The mode for batches does nothing at a call without a batch.
  if (failed === undefined) return true;
  cases += 1;
  try {
    // A caller that waits for a run waits as long as the storage can't say what became of it.
    if (!seen.over && mode === 'fails for ever' && !operation.closes) await rig.until(() => seen.over);
    if (!seen.over) throw new Error(`no answer after ${WAIT_LIMIT_MS} ms`);
    if (seen.thrown !== undefined) expectClean(seen.thrown);
    // In memory, what an orchestrator holds that could not unregister is held until the process ends.
    if (operation.closes && mode === 'fails for ever' && !rig.raw.capabilities.shared) return true;
    const next = operation.closes ? rig.open() : rig.orchestrator;
    if (operation.closes) await next.ready();
    if (!(await rig.until(() => allEnded(rig))) && !operation.single) await checkInvariants(rig, 2);
    const again = operation.closes ? watch(next.runDue()) : watch((operation.again ?? operation.act)(rig, prepared));
    await rig.until(() => again.over);
    if (!again.over) throw new Error('the repeated operation has no answer');
    if (again.thrown !== undefined) throw new Error('the repeated operation failed', { cause: again.thrown });
    await rig.until(() => allEnded(rig));
    await checkInvariants(rig, 2);
  } catch (thrown) {
    const about = `call ${at} (${failed}) ${mode}`;
    throw new Error(`${about}: ${(thrown as Error).message}`, { cause: (thrown as Error).cause ?? thrown });
  }
  return true;
}

function watch(promise: Promise<unknown>): { over: boolean; thrown?: unknown } {
  const seen: { over: boolean; thrown?: unknown } = { over: false };
  promise.then(
    () => {
      seen.over = true;
    },
    (thrown) => {
      seen.over = true;
      seen.thrown = thrown;
    },
  );
  return seen;
}

/** A clean error is an error of the library, or the storage's own error where the library only forwards the call. */
function expectClean(thrown: unknown): void {
  if (thrown instanceof StorageFault || isOrchestratorError(thrown)) return;
  throw new Error(`expected an OrchestratorError or the storage's own error, got ${String(thrown)}`, { cause: thrown });
}

describe.each(PLACES.map((place) => [place.name, place] as const))(
  'every fault of the storage, in %s',
  (_name, place) => {
    it.each(OPERATIONS.map((operation) => [operation.name, operation] as const))(
      '%s',
      async (_operation, operation) => {
        const failures: string[] = [];
        for (const mode of MODES) {
          for (let at = 1; ; at++) {
            try {
              if (!(await tryOne(operation, place, at, mode))) break;
            } catch (thrown) {
              failures.push((thrown as Error).message);
              if (failures.length > 20) break;
            }
          }
        }
        expect(failures).toEqual([]);
      },
    );
  },
);

afterAll(() => {
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  console.log(`${cases} faults in ${OPERATIONS.length} operations, ${seconds} s`);
});
