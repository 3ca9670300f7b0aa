/** `orchestrator.schedules`: what is due, a pause that every process keeps, and a run out of turn. */

import { describe, expect, it } from 'vitest';
import { allExecutions, createWorld, HOUR, MINUTE, settle, T0, ticksOf } from './schedule-world.ts';

const HOURLY = { cron: '0 * * * *', input: { region: 'eu' } };

describe('schedules', () => {
  it('are listed with their next ticks, and the execution that started last', async () => {
    const world = createWorld();
    const { schedules, executions } = await world.open('a', [
      HOURLY,
      { cron: '30 8 * * *', timezone: 'Europe/Berlin' },
    ]);
    const [hourly, daily] = await schedules.list();
    expect(hourly).toEqual({
      ...{ id: expect.stringMatching(/^report\.[0-9a-f]+$/), ensemble: 'report', cron: '0 * * * *', timezone: 'UTC' },
      ...{ overlap: 'skip', catchUp: 'once', input: { region: 'eu' }, paused: false },
      next: [T0 + HOUR, T0 + 2 * HOUR, T0 + 3 * HOUR],
    });
    expect(daily?.next[0]).toBe(T0 + 7.5 * HOUR);
    await world.clock.advance(HOUR);
    const [
      {
        executions: [run],
      },
      after,
    ] = await Promise.all([executions.list(), schedules.get(hourly?.id ?? '')]);
    expect(after).toMatchObject({
      last: { scheduledAt: T0 + HOUR, executionId: run?.id, status: 'completed' },
      next: [T0 + 2 * HOUR, T0 + 3 * HOUR, T0 + 4 * HOUR],
    });
  });

  it('a pause holds in every process and after a restart; what was due in between is not made up for', async () => {
    const world = createWorld();
    const first = await world.open('a', [HOURLY]);
    const second = await world.open('b', [HOURLY]);
    const [{ id } = { id: '' }] = await first.schedules.list();
    await world.clock.advance(HOUR);
    expect(await second.schedules.pause(id)).toMatchObject({ paused: true, next: [] });
    await world.clock.advance(3 * HOUR);
    await first.close();
    await second.close();
    const third = await world.open('c', [HOURLY]);
    await world.clock.advance(2 * HOUR + 30 * MINUTE);
    expect((await third.schedules.get(id)).paused).toBe(true);
    expect(await third.schedules.resume(id)).toMatchObject({
      paused: false,
      next: [T0 + 7 * HOUR, expect.any(Number), expect.any(Number)],
    });
    await world.clock.advance(HOUR);
    expect(ticksOf(await allExecutions(third))).toEqual([HOUR, 7 * HOUR]);
  });

  it('a pause holds ticks that wait for an earlier execution', async () => {
    const world = createWorld();
    let release = () => {};
    world.hold = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { schedules, ...orchestrator } = await world.open('a', [{ ...HOURLY, overlap: 'queue' }]);
    const [{ id } = { id: '' }] = await schedules.list();
    await world.clock.advance(2 * HOUR);
    await schedules.pause(id);
    world.hold = undefined;
    release();
    await world.clock.advance(2 * HOUR);
    expect(world.ran).toHaveLength(1);
    await schedules.resume(id);
    await world.clock.advance(HOUR);
    expect(ticksOf(await allExecutions({ ...orchestrator, schedules } as never))).toEqual([HOUR, 2 * HOUR, 5 * HOUR]);
  });

  it('a run out of turn has the input and the trigger of a tick, also while it is paused', async () => {
    const world = createWorld();
    const { schedules } = await world.open('a', [HOURLY]);
    const [{ id } = { id: '' }] = await schedules.list();
    await schedules.pause(id);
    await world.clock.advance(10 * MINUTE);
    const run = (await schedules.run(id)).result();
    await settle();
    expect(await run).toMatchObject({
      ...{ status: 'completed', input: { region: 'eu' }, output: { at: T0 + 10 * MINUTE } },
      trigger: { type: 'schedule', cron: '0 * * * *', scheduledAt: T0 + 10 * MINUTE },
    });
  });

  it('one that does not exist is not found', async () => {
    const world = createWorld();
    const { schedules } = await world.open('a', [HOURLY]);
    for (const call of ['get', 'pause', 'resume', 'run'] as const)
      await expect(schedules[call]('report.0')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
