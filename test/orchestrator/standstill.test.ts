/** A process that stood still for longer than its lease begins no further step of what another may have resumed by then. */

import { describe, expect, it } from 'vitest';
import { embeddedEngine } from '../../src/adapters/engine/embedded-engine.ts';
import { memoryStorage } from '../../src/adapters/storage/memory-storage.ts';
import { hostTurn, manualClock } from '../../src/adapters/testing/manual-clock.ts';
import { createOrchestrator } from '../../src/orchestrator.ts';

const LEASE_MS = 3000;
const OTHER = `own_${'9'.repeat(26)}`;

/** A flow of two steps: the process stands still when its second one is about to begin, with nothing left to do but to run it. */
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
    storage: {
      ...inner,
      renew(owner, until) {
        renewals += 1;
        return inner.renew(owner, until);
      },
    },
    clock,
  });
  orchestrator.on('agent.started', ({ data: { agent } }) => {
    if (agent !== 'b') return;
    // No timer has fired and no callback has run by the time that it is resumed.
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

describe('a process that stood still between two steps', () => {
  it('begins no further step of what another process took over', async () => {
    const { begun, ended } = await stopsBeforeStep((inner, now) => {
      void inner.join(OTHER, { now, leaseUntil: now + LEASE_MS });
      expect(inner.recover(OTHER, now)).toEqual({ freed: 1 });
    });
    expect([begun, ended]).toEqual([['a'], undefined]);
  });

  it('asks the storage, and begins the step when nobody took over', async () => {
    const { begun, renewals, ended } = await stopsBeforeStep(() => {});
    expect([begun, renewals, ended]).toEqual([['a', 'b'], 1, 'completed']);
  });
});
