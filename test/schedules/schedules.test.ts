/** `schedule` triggers on a manual clock: when executions start, and what happens to ticks that are missed or overlap. */

import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/engine/host/clock.port.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createOrchestrator, memoryStorage } from '../../src/index.ts';
import { allExecutions, createWorld, DAY, HOUR, MINUTE, settle, T0, ticksOf } from './schedule-world.ts';

/** A promise that the test resolves. */
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
  it('starts one execution at each tick, for thirty days', async () => {
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

  it('passes its trigger and its input to the execution', async () => {
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

  it('starts a tick with the same id, seed and random values in every process', async () => {
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

  it('two schedules of one ensemble with the same instants start one execution each', async () => {
    const world = createWorld();
    const process = await world.open('a', [{ input: { region: 'eu' } }, { input: { region: 'us' } }]);
    await world.clock.advance(30 * MINUTE);
    const runs = await allExecutions(process);
    expect(runs.map(({ input }) => (input as { region: string }).region).sort()).toEqual(['eu', 'eu', 'us', 'us']);
    await process.close();
  });

  it('begins with the first start, without ready(), and sets no timer before', async () => {
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

  it('is not served by a process with `schedules: false`, and not after close()', async () => {
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

  it('begins anew if its pattern is changed', async () => {
    const world = createWorld();
    const before = await world.open('a', [{ cron: '*/15 * * * *' }]);
    await world.clock.advance(HOUR);
    await before.close();
    await world.clock.advance(HOUR);
    const next = await world.open('b', [{ cron: '*/20 * * * *' }]);
    await settle();
    expect(world.ran).toHaveLength(4);
    await world.clock.advance(HOUR);
    expect(ticksOf(await allExecutions(next)).slice(4)).toEqual(every(20 * MINUTE, 3 * HOUR, 2 * HOUR + 20 * MINUTE));
    await next.close();
  });

  it('continues with other steps and another overlap if its pattern is the same', async () => {
    const world = createWorld();
    const before = await world.open('a', [{ cron: '0 * * * *' }]);
    await world.clock.advance(90 * MINUTE);
    await before.close();
    await world.clock.advance(HOUR);
    const next = await world.open('b', [{ cron: ' 0  * * * * ', overlap: 'queue', catchUp: 'skip', input: { a: 1 } }]);
    await world.clock.advance(HOUR);
    expect(ticksOf(await allExecutions(next))).toEqual([HOUR, 3 * HOUR]);
    await next.close();
  });

  it('keeps the process alive for its ticks after ready(), and not after a first start only', async () => {
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
    // One timer for the tick, and one that reads the wall clock again.
    expect(background).toEqual([true, true]);
    await orchestrator.ready();
    expect(background.slice(2)).toEqual([false, false]);
    await orchestrator.close();
    expect(world.clock.nextIn).toBeUndefined();
  });

  it('keeps the process alive for the deliveries of others after ready(), also when a start came first', async () => {
    const world = createWorld();
    const looks: (boolean | undefined)[] = [];
    const clock: Clock = {
      ...world.clock,
      setTimer(ms, callback, options) {
        if (ms === 5_000) looks.push(options?.background);
        return world.clock.setTimer(ms, callback, options);
      },
    };
    const notifications = [
      { type: 'webhook' as const, url: 'https://hook.example/', events: ['execution.failed' as const] },
    ];
    const storage = memoryStorage({ shared: true });
    const orchestrator = createOrchestrator({ clock, storage, ensembles: [{ ...DRAWN, trigger: [], notifications }] });
    await orchestrator.execute('report');
    await settle();
    expect(looks.at(-1)).toBe(true);
    await orchestrator.ready();
    await settle();
    expect(looks.at(-1)).toBe(false);
    await orchestrator.close();
  });

  it('a late start has its whole timeout', async () => {
    const world = createWorld();
    const ensembles = [{ ...DRAWN, timeout: MINUTE }];
    const before = await world.open('a', [], { ensembles });
    await before.close();
    await world.clock.advance(DAY + 5 * MINUTE);
    const next = await world.open('b', [], { ensembles });
    await settle();
    const [run] = await allExecutions(next);
    expect(run).toMatchObject({
      status: 'completed',
      createdAt: T0 + DAY + 5 * MINUTE,
      trigger: { scheduledAt: T0 + DAY },
    });
    expect(run?.deadlineAt).toBe(T0 + DAY + 6 * MINUTE);
    await next.close();
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
    const next = await world.open('b', [trigger]);
    await settle();
    const caughtUp = ticksOf(await allExecutions(next)).slice(1);
    await world.clock.advance(15 * MINUTE);
    const all = ticksOf(await allExecutions(next)).slice(1);
    await next.close();
    return { caughtUp, onTime: all.slice(caughtUp.length), world };
  };

  it('start one execution, for the last of them', async () => {
    const { caughtUp, onTime } = await afterDowntime(undefined, 3 * HOUR);
    expect(caughtUp).toEqual([3 * HOUR + 15 * MINUTE]);
    expect(onTime).toEqual([3 * HOUR + 30 * MINUTE]);
  });

  it('start no execution with `catchUp: skip`, and are logged', async () => {
    const { caughtUp, onTime, world } = await afterDowntime('skip', 3 * HOUR);
    expect(caughtUp).toEqual([]);
    expect(onTime).toEqual([3 * HOUR + 30 * MINUTE]);
    expect(world.logged.filter(({ message }) => message.includes('missed ticks are dropped'))).toHaveLength(1);
  });

  it('do not count as missed within a minute, also with `catchUp: skip`', async () => {
    expect((await afterDowntime('skip', 11 * MINUTE)).caughtUp).toEqual([30 * MINUTE]);
    expect((await afterDowntime('skip', 11 * MINUTE + 1)).caughtUp).toEqual([]);
  });

  it('are none if the process restarts before the next tick', async () => {
    expect((await afterDowntime('once', 5 * MINUTE)).caughtUp).toEqual([]);
  });

  it('of ten years of a schedule of seconds are counted quickly', async () => {
    const world = createWorld();
    await (await world.open('a', [{ cron: '* * * * * *' }])).close();
    world.clock.setNow(T0 + 3650 * DAY);
    const next = await world.open('b', [{ cron: '* * * * * *' }]);
    await settle();
    expect(world.ran).toHaveLength(1);
    await next.close();
  });

  it('while the machine slept count as missed, and a clock that is set back starts no tick twice', async () => {
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

describe('a tick before the end of the last execution', () => {
  it('is dropped, and logged', async () => {
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
    expect(world.logged.filter(({ message }) => message.includes('had not ended'))).toHaveLength(2);
    await process.close();
  });

  it('waits with `overlap: queue`: each starts after the end of the previous one, and none is lost', async () => {
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

  it('still waits in the next process, and the ticks that were missed in the meantime start once', async () => {
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
    const next = await world.open('b', [trigger]);
    await world.clock.advance(MINUTE);
    expect(ticksOf(await allExecutions(next))).toEqual([HOUR, 2 * HOUR, 3 * HOUR, 8 * HOUR]);
    await next.close();
  });

  it('does not delay another schedule', async () => {
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
  it('starts what is due, runs it, and returns the next instant', async () => {
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

  it('starts ticks that wait for an execution that sleeps after its end, one by one', async () => {
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
