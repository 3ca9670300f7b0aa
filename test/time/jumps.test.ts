/** The wall clock jumps forwards or backwards, by a second or by a year, while executions wait and workers hold leases. */

import { describe, expect, it } from 'vitest';
import { memoryStorage } from '../../src/adapters/storage/memory/memory-storage.ts';
import { code, echo } from '../../src/conformance/engine-suite/steps.ts';
import { PLACES, type Timed, timed } from './timed-place.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
const JUMPS = [SECOND, 5 * MINUTE, HOUR, DAY, YEAR].flatMap((ms) => [ms, -ms]);
const ENGINE = { engine: { leaseMs: 30_000, sweepMs: 500 } };
/** Fails once, and waits a minute. */
const FAILS_ONCE = code('a', 'later', { input: { ms: MINUTE }, retry: { maxAttempts: 2 } });
const WAIT = [FAILS_ONCE, echo('b', 1)];

function jump({ clock }: Pick<Timed, 'clock'>, ms: number): void {
  clock.setNow(clock.now() + ms);
}

/** @returns the time between the starts of the first and the second attempt */
function waited({ began }: Timed): number {
  const [first, second] = began.filter(([agent]) => agent === 'a');
  return (second?.[1] ?? Number.NaN) - (first?.[1] ?? Number.NaN);
}

describe.each(PLACES)('in %s', (name, create) => {
  const isShared = name !== 'memory';

  it.each(JUMPS)('a jump of %i ms while an execution waits: it is never lost, and never late', async (ms) => {
    const place = timed(create, WAIT, ENGINE);
    const { id } = await place.orchestrator.start('e');
    await place.advance(10 * SECOND);
    jump(place, ms);
    const record = await place.ended(id, MINUTE);
    expect(record.status).toBe('completed');
    // For other processes, only the stored instant counts: an execution is due by the wall clock.
    if (ms > 0 && isShared) expect(waited(place)).toBeLessThanOrEqual(MINUTE);
    else expect(waited(place)).toBe(MINUTE);
    for (const { duration } of [record, ...record.agents]) expect(duration).toBeGreaterThanOrEqual(0);
  });

  it.each(JUMPS)('a jump of %i ms while a step runs and a lease is held: the step runs once', async (ms) => {
    const place = timed(create, [code('a', 'slow', { input: { ms: 5 * MINUTE } }), echo('b', 1)], ENGINE);
    const { id } = await place.orchestrator.start('e');
    await place.advance(MINUTE);
    jump(place, ms);
    await place.advance(MINUTE);
    jump(place, -ms);
    const record = await place.ended(id, 3 * MINUTE);
    expect([record.status, record.duration]).toEqual(['completed', 5 * MINUTE]);
    expect(place.began).toEqual([
      ['a', 0],
      ['b', 5 * MINUTE],
    ]);
    expect(record.agents.map(({ duration }) => duration)).toEqual([5 * MINUTE, 0]);
  });

  it.each(JUMPS)('a jump of %i ms before a deadline: the deadline is on time', async (ms) => {
    const place = timed(create, { timeout: 10 * MINUTE, flow: [code('a', 'never')] }, ENGINE);
    const { id } = await place.orchestrator.start('e');
    await place.advance(MINUTE);
    jump(place, ms);
    const record = await place.ended(id, 9 * MINUTE);
    expect([record.status, record.duration, place.clock.monotonic()]).toEqual(['timed_out', 10 * MINUTE, 10 * MINUTE]);
  });

  it.each(JUMPS.filter((ms) => ms < 0))(
    'a jump of %i ms in a wait before a deadline: the deadline is not late',
    async (ms) => {
      const flow = [FAILS_ONCE, code('b', 'never')];
      const place = timed(create, { timeout: 10 * MINUTE, flow }, ENGINE);
      const { id } = await place.orchestrator.start('e');
      await place.advance(10 * SECOND);
      jump(place, ms);
      const record = await place.ended(id, 10 * MINUTE);
      expect([record.status, place.clock.monotonic()]).toEqual(['timed_out', 10 * MINUTE]);
    },
  );

  it('a second that is repeated many times', async () => {
    const place = timed(create, WAIT, ENGINE);
    const { id } = await place.orchestrator.start('e');
    for (let repeated = 0; repeated < 50; repeated++) {
      await place.advance(SECOND);
      jump(place, -SECOND);
    }
    expect(place.began.length).toBe(1);
    expect((await place.ended(id, 10 * SECOND)).status).toBe('completed');
    expect(waited(place)).toBe(MINUTE);
    const ids = await Promise.all(Array.from({ length: 500 }, async () => (await place.orchestrator.start('e')).id));
    expect(new Set(ids).size).toBe(500);
  });

  it.each([
    ['over 2038-01-19T03:14:07Z', Date.UTC(2038, 0, 19, 3, 13, 50)],
    ['over 2106-02-07T06:28:15Z', Date.UTC(2106, 1, 7, 6, 27, 50)],
    ['from before 1970 into it', -30 * SECOND],
    ['before 1970', Date.UTC(1960, 0, 1)],
    ['in the last millisecond before 1970', -1],
    ['in the year 9999', Date.UTC(9999, 11, 31)],
  ])('%s: executions wait, end, are found and listed', async (_what, now) => {
    const place = timed(create, WAIT, { now, ...ENGINE });
    const { id } = await place.orchestrator.start('e');
    expect(id).toMatch(/^exec_[0-9A-HJKMNP-TV-Z]{26}$/);
    const record = await place.ended(id, MINUTE);
    expect([record.status, record.createdAt, record.duration]).toEqual(['completed', now, MINUTE]);
    expect([waited(place), record.finishedAt]).toEqual([MINUTE, now + MINUTE]);
    const later = await place.orchestrator.start('e');
    await place.ended(later.id, MINUTE);
    const { executions } = await place.orchestrator.executions.list();
    expect(executions.map((one) => one.id).sort()).toEqual([id, later.id].sort());
  });

  it('a clock that goes back before the end causes no negative duration, also after a restart', async () => {
    const place = timed(create, WAIT, ENGINE);
    const { id } = await place.orchestrator.start('e');
    await place.advance(10 * SECOND);
    if (isShared) {
      await place.orchestrator.close({ grace: 0 });
      const next = timed(create, WAIT, { beside: place, ...ENGINE });
      await next.orchestrator.ready();
      await next.advance(45 * SECOND);
      jump(place, -2 * MINUTE);
    } else jump(place, -2 * MINUTE);
    const record = await place.ended(id, 10 * MINUTE);
    expect(record.status).toBe('completed');
    for (const { duration } of [record, ...record.agents]) expect(duration).toBeGreaterThanOrEqual(0);
  });
});

describe('two processes on one storage', () => {
  const shared = () => memoryStorage({ shared: true });
  const slow = [code('a', 'slow', { input: { ms: 5 * SECOND } }), echo('b', 1)];

  it.each(JUMPS)('a jump of %i ms that both see: every execution ends once, with one result a step', async (ms) => {
    const one = timed(shared, slow, ENGINE);
    const other = timed(shared, slow, { beside: one, ...ENGINE });
    const ids: string[] = [];
    for (const { orchestrator } of [one, other, one, other]) ids.push((await orchestrator.start('e')).id);
    await one.advance(2 * SECOND);
    jump(one, ms);
    for (const id of ids) {
      const record = await one.ended(id, 2 * MINUTE);
      expect([record.status, record.agents.map(({ name }) => name)]).toEqual(['completed', ['a', 'b']]);
    }
    // A step of an execution that was taken from a live process runs once more at most.
    expect(one.began.length + other.began.length).toBeLessThanOrEqual(2 * 8);
    for (const { orchestrator } of [one, other]) {
      const { id } = await orchestrator.start('e');
      expect((await one.ended(id, MINUTE)).status).toBe('completed');
    }
  });

  it.each([10 * SECOND, MINUTE, DAY, -10 * SECOND, -MINUTE, -DAY])(
    'a wall clock that is wrong by %i ms on one of them: every execution ends',
    async (skewMs) => {
      const one = timed(shared, slow, ENGINE);
      const other = timed(shared, slow, { beside: one, skewMs, ...ENGINE });
      await one.orchestrator.ready();
      await other.orchestrator.ready();
      await one.advance(SECOND);
      const ids: string[] = [];
      for (const { orchestrator } of [one, other, one, other]) ids.push((await orchestrator.start('e')).id);
      for (const id of ids) expect((await one.ended(id, 3 * MINUTE)).status).toBe('completed');
    },
  );
});
