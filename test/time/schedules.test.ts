/** Retries begin at the instant of their backoff, to the millisecond, with every storage. */

import { describe, expect, it } from 'vitest';
import { code, echo, ensemble } from '../../src/conformance/engine-suite/steps.ts';
import { PLACES, timed } from './timed-place.ts';

const CAP = 60_000;
const exponential = (attempts: number) => Array.from({ length: attempts - 1 }, (_, i) => Math.min(CAP, 1000 * 2 ** i));

describe.each(PLACES)('in %s', (_name, create) => {
  it.each([
    ['1, 2 and 4 s', { maxAttempts: 4 }, [1000, 2000, 4000]],
    ['doubling, and 60 s from then on', { maxAttempts: 12 }, exponential(12)],
    ['a hundred attempts', { maxAttempts: 100 }, exponential(100)],
    ['fixed', { maxAttempts: 5, backoff: 'fixed', delay: 2500 }, [2500, 2500, 2500, 2500]],
    ['linear', { maxAttempts: 5, backoff: 'linear', delay: 700 }, [700, 1400, 2100, 2800]],
    ['a wait just too short for a suspension', { maxAttempts: 3, backoff: 'fixed', delay: 999 }, [999, 999]],
    ['a wait just long enough for a suspension', { maxAttempts: 3, backoff: 'fixed', delay: 1000 }, [1000, 1000]],
  ])('%s', async (_what, retry, waits) => {
    const { orchestrator, began, ended } = timed(create, [code('a', 'boom', { retry })]);
    const { id } = await orchestrator.start('e');
    const total = waits.reduce((sum, wait) => sum + wait, 0);
    const record = await ended(id, total);
    expect(began.slice(1).map(([, at], i) => at - (began[i]?.[1] ?? 0))).toEqual(waits);
    expect([record.status, record.duration]).toEqual(['failed', total]);
    expect(record.agents[0]).toMatchObject({ attempts: waits.length + 1, duration: total });
  });

  it('concurrent items: each keeps its own backoff', async () => {
    const flow = [
      {
        foreach: [0, 1, 2, 3],
        concurrency: 4,
        steps: [
          code('w', 'slow', { input: { ms: '${item * 130}' } }),
          code('a', 'boom', { input: '${item}', retry: { maxAttempts: 4 }, continueOnError: true }),
        ],
      },
    ];
    const { orchestrator, began, ended } = timed(create, flow);
    const { id } = await orchestrator.start('e');
    await ended(id, 10_000);
    const attempts = began.filter(([agent]) => agent === 'a').map(([, at]) => at);
    const expected = [0, 130, 260, 390].flatMap((start) => [0, 1000, 3000, 7000].map((at) => start + at));
    expect([...attempts].sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
  });

  it('a hundred executions, a millisecond apart: each keeps its own backoff', async () => {
    const { orchestrator, began, advance } = timed(create, [code('a', 'boom', { retry: { maxAttempts: 4 } })]);
    for (let i = 0; i < 100; i++) {
      await orchestrator.start('e');
      await advance(1);
    }
    await advance(8000);
    const attempts = began.map(([, at]) => at).sort((a, b) => a - b);
    const expected = Array.from({ length: 100 }, (_, i) => [0, 1000, 3000, 7000].map((at) => i + at)).flat();
    expect(attempts).toEqual(expected.sort((a, b) => a - b));
  });

  it('a process that resumes an execution keeps the backoff', async () => {
    if (!create().capabilities.shared) return;
    const definition = ensemble([code('a', 'boom', { retry: { maxAttempts: 5 } })]);
    const first = timed(create, definition);
    const { id } = await first.orchestrator.start('e');
    await first.advance(3500);
    await first.orchestrator.close({ grace: 0 });
    const second = timed(create, definition, { beside: first });
    await second.orchestrator.ready();
    const record = await second.ended(id, 60_000);
    expect([...first.began, ...second.began].map(([, at]) => at)).toEqual([0, 1000, 3000, 7000, 15_000]);
    expect([record.status, record.agents[0]?.attempts, record.duration]).toEqual(['failed', 5, 15_000]);
  });

  it('an execution whose retry succeeds continues at that instant', async () => {
    const { orchestrator, began, ended } = timed(create, [
      code('a', 'later', { input: { ms: 1234 }, retry: { maxAttempts: 2 } }),
      echo('b', 1),
    ]);
    const { id } = await orchestrator.start('e');
    expect((await ended(id, 5000)).duration).toBe(1234);
    expect(began).toEqual([
      ['a', 0],
      ['a', 1234],
      ['b', 1234],
    ]);
  });
});
