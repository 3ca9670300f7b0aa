/** A process that was stopped for longer than its lease begins no further step of an execution that another process may have resumed. */

import { describe, expect, it } from 'vitest';
import { hostTurn, manualClock } from '../../src/adapters/clock/manual-clock.ts';
import { embeddedEngine } from '../../src/adapters/embedded-engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { createOrchestrator } from '../../src/orchestrator/create-orchestrator.ts';
import { changeStorage } from '../../src/testing-kit/processes/change-storage.ts';

const LEASE_MS = 3000;
const OTHER = `own_${'9'.repeat(26)}`;

/** A flow of two steps. The process is stopped right before it runs the second one. */
async function stopsBeforeStep(meanwhile: (inner: ReturnType<typeof memoryStorage>, now: number) => void) {
  const clock = manualClock();
  const inner = memoryStorage({ shared: true });
  const begun: string[] = [];
  let renewals = 0;
  const orchestrator = createOrchestrator({
    ensembles: [
      {
        name: 'e',
        flow: ['a', 'b'].map((agent) => ({ agent, operation: 'code', config: { script: 'note', agent } })),
      },
    ],
    scripts: { note: ({ execution }) => void begun.push(execution.agent) },
    engine: embeddedEngine({ leaseMs: LEASE_MS }),
    storage: changeStorage(inner, {
      workers: {
        renew(worker, until) {
          renewals += 1;
          return inner.workers.renew(worker, until);
        },
      },
    }),
    clock,
  });
  orchestrator.on('agent.started', ({ data: { agent } }) => {
    if (agent !== 'b') return;
    // When the process continues, no timer has fired and no callback has run.
    clock.setNow(clock.now() + LEASE_MS);
    meanwhile(inner, clock.now());
  });
  const run = orchestrator.execute('e');
  let ended: string | undefined;
  run.then(
    ({ status }) => {
      ended = status;
    },
    () => undefined,
  );
  for (let turn = 0; turn < 10; turn++) await hostTurn();
  void orchestrator.close({ grace: 0 });
  return { begun, renewals, ended };
}

describe('a process that was stopped between two steps', () => {
  it('begins no further step of an execution that another process resumed', async () => {
    const { begun, ended } = await stopsBeforeStep((inner, now) => {
      void inner.workers.register(OTHER, { now, leaseUntil: now + LEASE_MS });
      expect(inner.workers.reclaimFromDead(OTHER, now)).toEqual({ freed: 1 });
    });
    expect([begun, ended]).toEqual([['a'], undefined]);
  });

  it('asks the storage, and begins the step if no other process resumed the execution', async () => {
    const { begun, renewals, ended } = await stopsBeforeStep(() => {});
    expect([begun, renewals, ended]).toEqual([['a', 'b'], 1, 'completed']);
  });
});
