/** A host that wakes its process with alarms: the engine asks for instants, sets no long timer, and works in `runDue`. */

import { describe, expect, it } from 'vitest';
import { hostTurn } from '../../src/adapters/clock/manual-clock.ts';
import type { EnsembleDraft } from '../../src/authoring/draft.ts';
import type { Storage } from '../../src/engine/storage/storage.port.ts';
import { manualClock } from '../../src/entries/testing.ts';
import { createOrchestrator, memoryStorage } from '../../src/index.ts';

const HOUR = 3_600_000;
const SLEEPS: EnsembleDraft = { name: 'sleeps', flow: [{ sleep: '1h' }] };

function scene(ensembles: readonly EnsembleDraft[], wakeAt?: Storage['wakeAt']) {
  const clock = manualClock();
  const alarms: number[] = [];
  const warnings: string[] = [];
  const warn = (_about: object, message = '') => void warnings.push(message);
  const begun = clock.now();
  const orchestrator = createOrchestrator({
    ensembles,
    scripts: { hangs: () => new Promise(() => {}) },
    storage: { ...memoryStorage(), wakeAt: wakeAt ?? ((instant) => void alarms.push(instant - begun)) },
    clock,
    logger: { debug() {}, info() {}, warn, error: warn },
  });
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) await hostTurn();
  };
  return { clock, elapsed: () => clock.now() - begun, alarms, warnings, orchestrator, settle };
}

describe('a host with alarms', () => {
  it('is asked for the instant at which an execution is due, and no timer waits for it', async () => {
    const { clock, alarms, orchestrator, settle } = scene([SLEEPS]);
    const { id } = await orchestrator.start('sleeps');
    await settle();
    // The first alarm is for the case that the process ends while the run is active.
    await clock.advance(30_000);
    expect(await orchestrator.runDue()).toEqual({ nextDueAt: clock.now() - 30_000 + HOUR });
    expect([alarms, clock.nextIn]).toEqual([[30_000, HOUR], undefined]);
    await clock.advance(HOUR - 30_000);
    await settle();
    expect((await orchestrator.executions.get(id)).status).toBe('waiting');
    expect(await orchestrator.runDue()).toEqual({});
    expect((await orchestrator.executions.get(id)).status).toBe('completed');
  });

  it('is asked for a later instant after an earlier one is over', async () => {
    const { clock, elapsed, alarms, orchestrator, settle } = scene([
      { name: 'twice', flow: [{ sleep: '1h' }, { sleep: '2h' }] },
    ]);
    await orchestrator.start('twice');
    await settle();
    for (const next of [HOUR, HOUR + 30_000, 3 * HOUR]) {
      await clock.advance((alarms.at(-1) ?? 0) - elapsed());
      await orchestrator.runDue();
      expect(alarms.at(-1)).toBe(next);
    }
  });

  it('is asked to look after a run within half a minute, in case its process ends', async () => {
    const { alarms, orchestrator, settle } = scene([
      { name: 'hangs', flow: [{ agent: 'a', operation: 'code', config: { script: 'hangs' } }] },
    ]);
    await orchestrator.start('hangs');
    await settle();
    expect(alarms).toEqual([30_000]);
  });

  it('is asked for the ticks of schedules', async () => {
    const { clock, alarms, orchestrator } = scene([
      { name: 'hourly', trigger: [{ type: 'schedule', cron: '0 * * * *' }], flow: [] },
    ]);
    const first = HOUR - (clock.now() % HOUR);
    await orchestrator.ready();
    expect([alarms, clock.nextIn]).toEqual([[first], undefined]);
    await clock.advance(first);
    await orchestrator.runDue();
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
    expect(alarms).toContain(first + HOUR);
  });

  it('that fails is logged, and the execution stays due', async () => {
    const { clock, warnings, orchestrator, settle } = scene([SLEEPS], () => Promise.reject(new Error('no alarm')));
    const { id } = await orchestrator.start('sleeps');
    await settle();
    expect(warnings).toEqual(['the host could not be asked to wake this process']);
    await clock.advance(HOUR);
    await orchestrator.runDue();
    expect((await orchestrator.executions.get(id)).status).toBe('completed');
  });

  it('that failed once is asked again', async () => {
    const asked: number[] = [];
    const { clock, orchestrator, settle } = scene([SLEEPS], (instant) => {
      asked.push(instant - begun);
      return asked.length === 1 ? Promise.reject(new Error('no alarm')) : undefined;
    });
    const begun = clock.now();
    await orchestrator.start('sleeps');
    await settle();
    await orchestrator.runDue();
    expect(asked).toEqual([30_000, HOUR]);
  });
});
