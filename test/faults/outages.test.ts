/** No outage of the storage ends an accepted execution, at whichever call the outage begins and however long it lasts. */

import { describe, expect, it } from 'vitest';
import type { Execution } from '../../src/engine/execution/execution.ts';
import { type Mode, OUTAGE_MODES } from './faulty-storage.ts';
import { FLOW_FORMS, type FlowForm } from './flow-forms.ts';
import { allEnded, checkInvariants, LEASE_MS, makeRig, OUTAGE_PLACES, type Place } from './rig.ts';

/** The outages: one that is shorter than the lease, and one after which other workers could have claimed the execution. */
const OUTAGES: readonly (readonly [ms: number, modes: readonly Mode[]])[] = [
  [LEASE_MS / 2, ['is applied, then fails for ever']],
  [3 * LEASE_MS, OUTAGE_MODES],
];

/** Hundreds of outages each: a few seconds on a quiet machine. */
const MOST_MS = 240_000;

/** @returns false when the run makes fewer than `at` calls */
async function tryOne(form: FlowForm, place: Place, at: number, mode: Mode, outageMs: number): Promise<boolean> {
  const rig = await makeRig(place, { ensembles: form.ensembles });
  const { faults, clock, orchestrator, raw } = rig;
  await orchestrator.ready();
  faults.arm(at, mode);
  let id: string | undefined;
  let isOver = false;
  orchestrator.start('e').then(
    async (handle) => {
      id = handle.id;
      isOver = true;
      // `result()` may fail with the storage.
      handle.result().catch(() => undefined);
      await form.accepted?.(rig, handle.id);
    },
    () => {
      isOver = true;
    },
  );
  await rig.until(() => faults.failed !== undefined || (isOver && id === undefined) || everything(rig));
  const { failed } = faults;
  if (failed !== undefined) {
    const end = clock.monotonic() + outageMs;
    await rig.until(() => clock.monotonic() >= end);
  }
  faults.heal();
  if (failed === undefined) return false;
  const about = `call ${at} (${failed}) ${mode}, for ${outageMs} ms`;
  try {
    if (!(await rig.until(() => isOver))) throw new Error('`start` has no answer');
    if (!(await rig.until(() => allEnded(rig)))) throw new Error('an execution does not end');
    await checkInvariants(rig, 2);
    // `start` failed for its caller, and the execution did not run.
    if (id === undefined) return true;
    const records = await raw.executions.list({ limit: 250 });
    const ends = records.map(({ ensemble, status }) => `${ensemble}: ${status}`);
    const wanted = records.map(({ ensemble }) => `${ensemble}: completed`);
    expect(ends).toEqual(wanted);
    const record = (await raw.executions.get(id)) as Execution;
    expect(record.output).toEqual(form.output);
  } catch (thrown) {
    throw new Error(`${about}: ${(thrown as Error).message}`, { cause: thrown });
  } finally {
    void orchestrator.close({ grace: 0 });
  }
  return true;
}

async function everything(rig: Awaited<ReturnType<typeof makeRig>>): Promise<boolean> {
  const records = await rig.raw.executions.list({ limit: 250 });
  return records.length > 0 && allEnded(rig);
}

describe.each(OUTAGE_PLACES.map((place) => [place.name, place] as const))('an outage of %s', (_name, place) => {
  it.each(FLOW_FORMS.map((form) => [form.name, form] as const))(
    'ends no execution: %s',
    async (_form, form) => {
      const failures: string[] = [];
      for (const [outageMs, modes] of OUTAGES) {
        for (const mode of modes) {
          for (let at = 1; failures.length < 10; at++) {
            try {
              if (!(await tryOne(form, place, at, mode, outageMs))) break;
            } catch (thrown) {
              failures.push((thrown as Error).message);
            }
          }
        }
      }
      expect(failures).toEqual([]);
    },
    MOST_MS,
  );
});
