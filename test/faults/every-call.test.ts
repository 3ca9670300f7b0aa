/** T6: every public operation, with every call of the storage failing in every way: exhaustive, in memory. */

import { afterAll, describe, expect, it } from 'vitest';
import { isOrchestratorError } from '../../src/engine/errors.ts';
import { MODES, type Mode, StorageFault } from './faulty-storage.ts';
import type { Operation } from './operation.ts';
import { OPERATIONS } from './operations.ts';
import { allEnded, checkInvariants, makeRig, PATIENCE_MS, PLACES, type Place } from './rig.ts';

let cases = 0;
const began = performance.now();

/** @returns false when the operation makes fewer calls than that */
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
  // A mode that asks for a batch does nothing at a call that has none.
  if (failed === undefined) return true;
  cases += 1;
  try {
    // Who waits for a run waits on while nobody can know how it stands.
    if (!seen.over && mode === 'fails for ever' && !operation.closes) await rig.until(() => seen.over);
    if (!seen.over) throw new Error(`it has no answer after ${PATIENCE_MS} ms`);
    if (seen.thrown !== undefined) expectClean(seen.thrown);
    // What is held in memory by an orchestrator that could not even leave is held for as long as the process lives.
    if (operation.closes && mode === 'fails for ever' && !rig.raw.capabilities.shared) return true;
    const next = operation.closes ? rig.open() : rig.orchestrator;
    if (operation.closes) await next.ready();
    if (!(await rig.until(() => allEnded(rig))) && !operation.single) await checkInvariants(rig, 2);
    const again = operation.closes ? watch(next.runDue()) : watch((operation.again ?? operation.act)(rig, prepared));
    await rig.until(() => again.over);
    if (!again.over) throw new Error('the operation, made again, has no answer');
    if (again.thrown !== undefined) throw new Error('the operation, made again, failed', { cause: again.thrown });
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

/** A clean error is one of the library, or the storage's own where the library only passes the call on. */
function expectClean(thrown: unknown): void {
  if (thrown instanceof StorageFault || isOrchestratorError(thrown)) return;
  throw new Error(`no clean error: ${String(thrown)}`, { cause: thrown });
}

describe.each(PLACES.map((place) => [place.name, place] as const))('T6: in %s', (_name, place) => {
  it.each(OPERATIONS.map((operation) => [operation.name, operation] as const))('%s', async (_operation, operation) => {
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
  });
});

afterAll(() => {
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  console.log(`T6: ${cases} faults in ${OPERATIONS.length} operations, ${seconds} s`);
});
