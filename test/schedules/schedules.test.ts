/** Issue 5, item 6: `schedule` triggers on a manual clock: what starts when, and what becomes of what is in the way. */

import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/engine/ports/clock.ts';
import { createOrchestrator, memoryStorage } from '../../src/index.ts';
import { createTestOrchestrator } from '../../src/testing.ts';
import { allExecutions, createWorld, DAY, HOUR, MINUTE, settle, T0, ticksOf } from './schedule-world.ts';

/** A promise that is kept when it is told to be. */
function gate() {
  let open = () => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

const every = (ms: number, until: number, from = ms): number[] =>
  Array.from({ length: Math.floor((until - from) / ms) + 1 }, (_, i) => from + i * ms);

describe('a schedule', () => {
  it('starts a run at each tick, for thirty days, each once', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'report', flow: [], trigger: [{ type: 'schedule', cron: '*/15 * * * *' }] }],
    });
    await orchestrator.ready();
    const from = orchestrator.clock.now();
    await orchestrator.clock.advance(30 * DAY);
    const executions = await allExecutions(orchestrator as never);
    expect(executions.map(({ trigger }) => (trigger.scheduledAt as number) - from)).toEqual(
      every(15 * MINUTE, 30 * DAY),
    );
    expect(new Set(executions.map(({ status }) => status))).toEqual(new Set(['completed']));
    await orchestrator.close();
  });

  it('tells its run when and why it was started, and gives it its input', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        {
          name: 'report',
          inputs: { region: { type: 'string', required: true }, days: { type: 'integer', default: 7 } },
          trigger: [{ type: 'schedule', cron: '0 9 * * *', timezone: 'Asia/Kolkata', input: { region: 'eu' } }],
          flow: [],
          outputs: {
            at: '${date(trigger.scheduledAt)}',
            by: '${trigger.cron} ${trigger.timezone}',
            days: '${input.days}',
          },
        },
      ],
    });
    await orchestrator.ready();
    await orchestrator.clock.advance(DAY);
    const [run] = await allExecutions(orchestrator as never);
    const scheduledAt = Date.UTC(2026, 0, 1, 3, 30);
    expect(run).toMatchObject({
      trigger: { type: 'schedule', cron: '0 9 * * *', timezone: 'Asia/Kolkata', scheduledAt },
      createdAt: scheduledAt,
      input: { region: 'eu', days: 7 },
      output: { at: '2026-01-01T03:30:00.000Z', by: '0 9 * * * Asia/Kolkata', days: 7 },
    });
    await orchestrator.close();
  });

  it('has the same id, seed and random values for a tick, whoever starts it', async () => {
    const idsOf = async () => {
      const world = createWorld();
      const process = await world.open('a', [{}], { ensembles: [DRAWN] });
      await world.clock.advance(HOUR);
      const runs = await allExecutions(process);
      await process.close();
      return runs.map(({ id, output }) => ({ id, output }));
    };
    const first = await idsOf();
    expect(first).toHaveLength(4);
    expect(await idsOf()).toEqual(first);
  });

  it('two of one ensemble at the same instants start a run each', async () => {
    const world = createWorld();
    const process = await world.open('a', [{ input: { region: 'eu' } }, { input: { region: 'us' } }]);
    await world.clock.advance(30 * MINUTE);
    const runs = await allExecutions(process);
    expect(runs.map(({ input }) => (input as { region: string }).region).sort()).toEqual(['eu', 'eu', 'us', 'us']);
    await process.close();
  });

  it('begins with the first start where nobody calls ready(), and sets no timer before', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'report', flow: [], trigger: [{ type: 'schedule', cron: '*/15 * * * *' }] }],
    });
    await settle();
    expect(orchestrator.clock.nextIn).toBeUndefined();
    await orchestrator.clock.advance(HOUR);
    await orchestrator.execute('report');
    await orchestrator.clock.advance(HOUR);
    const types = (await allExecutions(orchestrator as never)).map(({ trigger }) => trigger.type);
    expect(types).toEqual(['call', 'schedule', 'schedule', 'schedule', 'schedule']);
    await orchestrator.close();
  });

  it('is left alone by a process with `schedules: false`, and by one that is closed', async () => {
    const world = createWorld();
    const idle = await world.open('idle', [{}], { schedules: false });
    await world.clock.advance(HOUR);
    expect(world.ran).toEqual([]);
    const busy = await world.open('busy', [{}]);
    await world.clock.advance(15 * MINUTE);
    expect(world.ran).toHaveLength(1);
    await busy.close();
    await world.clock.advance(HOUR);
    expect(world.ran).toHaveLength(1);
    await idle.close();
    expect(() => createTestOrchestrator({ schedules: 'no' as never })).toThrow('`schedules` must be true or false');
  });

  it('begins from now on when its pattern is changed, and knows nothing of the one before', async () => {
    const world = createWorld();
    const before = await world.open('a', [{ cron: '*/15 * * * *' }]);
    await world.clock.advance(HOUR);
    await before.close();
    await world.clock.advance(HOUR);
    const behind = await world.open('b', [{ cron: '*/20 * * * *' }]);
    await settle();
    expect(world.ran).toHaveLength(4);
    await world.clock.advance(HOUR);
    expect(ticksOf(await allExecutions(behind)).slice(4)).toEqual(every(20 * MINUTE, 3 * HOUR, 2 * HOUR + 20 * MINUTE));
    await behind.close();
  });

  it('goes on with other steps and another overlap, since its pattern is the same', async () => {
    const world = createWorld();
    const before = await world.open('a', [{ cron: '0 * * * *' }]);
    await world.clock.advance(90 * MINUTE);
    await before.close();
    await world.clock.advance(HOUR);
    const behind = await world.open('b', [
      { cron: ' 0  * * * * ', overlap: 'queue', catchUp: 'skip', input: { a: 1 } },
    ]);
    await world.clock.advance(HOUR);
    expect(ticksOf(await allExecutions(behind))).toEqual([HOUR, 3 * HOUR]);
    await behind.close();
  });

  it('keeps the process alive for its ticks once ready() was called, and not for a first start alone', async () => {
    const world = createWorld(memoryStorage());
    const background: (boolean | undefined)[] = [];
    const clock: Clock = {
      ...world.clock,
      setTimer(ms, callback, options) {
        background.push(options?.background);
        return world.clock.setTimer(ms, callback, options);
      },
    };
    const orchestrator = createOrchestrator({ clock, ensembles: [DRAWN] });
    await orchestrator.execute('report');
    await settle();
    expect(background).toEqual([true]);
    await orchestrator.ready();
    expect(background).toEqual([true, false]);
    await orchestrator.close();
    expect(world.clock.nextIn).toBeUndefined();
  });

  it('starts late with all of its time', async () => {
    const world = createWorld();
    const ensembles = [{ ...DRAWN, timeout: MINUTE }];
    const before = await world.open('a', [], { ensembles });
    await before.close();
    await world.clock.advance(DAY + 5 * MINUTE);
    const behind = await world.open('b', [], { ensembles });
    await settle();
    const [run] = await allExecutions(behind);
    expect(run).toMatchObject({
      status: 'completed',
      createdAt: T0 + DAY + 5 * MINUTE,
      trigger: { scheduledAt: T0 + DAY },
    });
    expect(run?.deadlineAt).toBe(T0 + DAY + 6 * MINUTE);
    await behind.close();
  });
});

const DRAWN = {
  name: 'report',
  trigger: [{ type: 'schedule' as const, cron: '*/15 * * * *' }],
  flow: [],
  outputs: { drawn: '${random()}' },
};

describe('ticks that were missed', () => {
  const afterDowntime = async (catchUp: 'once' | 'skip' | undefined, downMs: number) => {
    const world = createWorld();
    const trigger = catchUp === undefined ? {} : { catchUp };
    const before = await world.open('a', [trigger]);
    await world.clock.advance(20 * MINUTE);
    await before.close();
    await world.clock.advance(downMs);
    const behind = await world.open('b', [trigger]);
    await settle();
    const caughtUp = ticksOf(await allExecutions(behind)).slice(1);
    await world.clock.advance(15 * MINUTE);
    const all = ticksOf(await allExecutions(behind)).slice(1);
    await behind.close();
    return { caughtUp, onTime: all.slice(caughtUp.length), world };
  };

  it('start one run for all of them, that of the last', async () => {
    const { caughtUp, onTime } = await afterDowntime(undefined, 3 * HOUR);
    expect(caughtUp).toEqual([3 * HOUR + 15 * MINUTE]);
    expect(onTime).toEqual([3 * HOUR + 30 * MINUTE]);
  });

  it('start nothing with `catchUp: skip`, and the log says so', async () => {
    const { caughtUp, onTime, world } = await afterDowntime('skip', 3 * HOUR);
    expect(caughtUp).toEqual([]);
    expect(onTime).toEqual([3 * HOUR + 30 * MINUTE]);
    expect(world.logged.filter(({ message }) => message.includes('left out'))).toHaveLength(1);
  });

  it('are not missed within a minute, also with `catchUp: skip`', async () => {
    expect((await afterDowntime('skip', 11 * MINUTE)).caughtUp).toEqual([30 * MINUTE]);
    expect((await afterDowntime('skip', 11 * MINUTE + 1)).caughtUp).toEqual([]);
  });

  it('are none when the process comes back before the next one', async () => {
    expect((await afterDowntime('once', 5 * MINUTE)).caughtUp).toEqual([]);
  });

  it('of ten years in which a schedule of seconds stood still are looked over at once', async () => {
    const world = createWorld();
    await (await world.open('a', [{ cron: '* * * * * *' }])).close();
    world.clock.setNow(T0 + 3650 * DAY);
    const behind = await world.open('b', [{ cron: '* * * * * *' }]);
    await settle();
    expect(world.ran).toHaveLength(1);
    await behind.close();
  });

  it('while the machine slept count as missed, and the clock set back starts nothing twice', async () => {
    const world = createWorld(memoryStorage());
    const process = await world.open('a', [{}]);
    await world.clock.advance(MINUTE);
    world.clock.setNow(T0 + 5 * HOUR + MINUTE);
    await world.clock.advance(10 * MINUTE);
    expect(ticksOf(await allExecutions(process))).toEqual([5 * HOUR]);
    world.clock.setNow(T0 + 4 * HOUR);
    await world.clock.advance(HOUR);
    expect(ticksOf(await allExecutions(process))).toEqual([5 * HOUR]);
    await world.clock.advance(15 * MINUTE);
    expect(ticksOf(await allExecutions(process))).toEqual([5 * HOUR, 5 * HOUR + 15 * MINUTE]);
    await process.close();
  });
});

describe('a tick whose last run is not over', () => {
  it('is dropped, and the log says so', async () => {
    const world = createWorld();
    const process = await world.open('a', [{}]);
    const { promise, open } = gate();
    world.hold = promise;
    await world.clock.advance(50 * MINUTE);
    expect(world.ran).toHaveLength(1);
    world.hold = undefined;
    open();
    await settle();
    await world.clock.advance(10 * MINUTE);
    expect(ticksOf(await allExecutions(process))).toEqual([15 * MINUTE, HOUR]);
    expect(world.logged.filter(({ message }) => message.includes('is not over'))).toHaveLength(2);
    await process.close();
  });

  it('waits with `overlap: queue`: one behind the other, as soon as each is over, none lost', async () => {
    const world = createWorld();
    const process = await world.open('a', [{ overlap: 'queue' }]);
    const gates = [gate(), gate(), gate(), gate()];
    const hold = (i: number) => {
      world.hold = gates[i]?.promise;
    };
    hold(0);
    await world.clock.advance(62 * MINUTE);
    expect(world.ran.map(({ scheduledAt }) => scheduledAt - T0)).toEqual([15 * MINUTE]);
    for (let i = 0; i < 4; i++) {
      hold(i + 1);
      gates[i]?.open();
      await settle();
      expect(world.ran).toHaveLength(Math.min(4, i + 2));
    }
    expect(world.ran.map(({ scheduledAt }) => scheduledAt - T0)).toEqual(every(15 * MINUTE, HOUR));
    expect(new Set(world.ran.map(({ at }) => at - T0))).toEqual(new Set([15 * MINUTE, 62 * MINUTE]));
    await process.close();
  });

  it('is still waiting when the process is another one, while what was missed meanwhile runs once', async () => {
    const world = createWorld();
    const trigger = { overlap: 'queue', cron: '0 * * * *' } as const;
    const before = await world.open('a', [trigger]);
    const { promise, open } = gate();
    world.hold = promise;
    await world.clock.advance(3 * HOUR + MINUTE);
    const closing = before.close({ grace: 0 });
    world.hold = undefined;
    open();
    await settle();
    await closing;
    await world.clock.advance(5 * HOUR);
    const behind = await world.open('b', [trigger]);
    await world.clock.advance(MINUTE);
    expect(ticksOf(await allExecutions(behind))).toEqual([HOUR, 2 * HOUR, 3 * HOUR, 8 * HOUR]);
    await behind.close();
  });

  it('does not hold up another schedule', async () => {
    const world = createWorld();
    const process = await world.open('a', [{ cron: '0 0 1 1 *' }, { cron: '*/30 * * * *' }, { cron: '*/20 * * * *' }]);
    const { promise, open } = gate();
    world.hold = promise;
    await world.clock.advance(30 * MINUTE);
    expect(ticksOf(await allExecutions(process))).toEqual([20 * MINUTE, 30 * MINUTE]);
    open();
    await settle();
    await process.close();
  });
});

describe('runDue()', () => {
  it('starts what is due, runs it, and says when to come back', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [{ name: 'report', flow: [], trigger: [{ type: 'schedule', cron: '*/15 * * * *' }] }],
    });
    const from = orchestrator.clock.now();
    expect(await orchestrator.runDue()).toEqual({ nextDueAt: from + 15 * MINUTE });
    expect(orchestrator.clock.nextIn, 'no timer is left').toBeUndefined();
    await orchestrator.clock.advance(15 * MINUTE);
    expect(await allExecutions(orchestrator as never)).toEqual([]);
    expect(await orchestrator.runDue()).toEqual({ nextDueAt: from + 30 * MINUTE });
    await orchestrator.clock.advance(50 * MINUTE);
    expect(await orchestrator.runDue()).toEqual({ nextDueAt: from + 75 * MINUTE });
    const runs = await allExecutions(orchestrator as never);
    expect(runs.map(({ trigger, status }) => [(trigger.scheduledAt as number) - from, status])).toEqual([
      [15 * MINUTE, 'completed'],
      [60 * MINUTE, 'completed'],
    ]);
    await orchestrator.close();
  });

  it('starts what waits behind a run that sleeps when that is over, one by one', async () => {
    const orchestrator = createTestOrchestrator({
      ensembles: [
        {
          name: 'report',
          flow: [{ sleep: '150m' }],
          trigger: [{ type: 'schedule', cron: '0 * * * *', overlap: 'queue' }],
        },
      ],
    });
    const from = orchestrator.clock.now();
    let { nextDueAt } = await orchestrator.runDue();
    for (let calls = 0; calls < 1000 && (nextDueAt as number) <= from + 12 * HOUR; calls++) {
      await orchestrator.clock.advance(Math.max(0, (nextDueAt as number) - orchestrator.clock.now()));
      ({ nextDueAt } = await orchestrator.runDue());
    }
    const runs = await allExecutions(orchestrator as never);
    expect(runs.map(({ trigger }) => (trigger.scheduledAt as number) - from)).toEqual(every(HOUR, 5 * HOUR));
    expect(runs.map(({ createdAt }) => createdAt - from)).toEqual(every(150 * MINUTE, 11 * HOUR, HOUR));
  });
});
