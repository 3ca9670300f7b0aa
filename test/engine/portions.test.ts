/** Long work in portions: each takes about 10 ms, and the event loop has a turn between them. */

import { describe, expect, it } from 'vitest';
import { inPortions } from '../../src/engine/base/portions.ts';

/** A clock that stands still, except for what work takes. */
function setUp(most: number) {
  const clock = {
    now: 0,
    turns: 0,
    monotonic: () => clock.now,
    async turn() {
      clock.turns += 1;
    },
    sleep: () => Promise.resolve(),
  };
  const portions = inPortions(clock, most);
  /** @returns the sizes of the portions */
  const work = async (times: number, msPerEntry: number) => {
    const sizes: number[] = [];
    for (let i = 0; i < times; i++)
      await portions.next((size) => {
        sizes.push(size);
        clock.now += size * msPerEntry;
      });
    return sizes;
  };
  return { clock, work };
}

describe('portions', () => {
  it('grow while they take less than 10 ms, up to the largest', async () => {
    expect(await setUp(100).work(6, 0.01)).toEqual([8, 16, 32, 64, 100, 100]);
    expect(await setUp(5).work(2, 0)).toEqual([5, 5]);
  });

  it('shrink to what takes 10 ms when an entry takes long, and to one that takes longer', async () => {
    const { work } = setUp(500);
    await work(8, 0.01);
    expect(await work(3, 2)).toEqual([500, 5, 5]);
    expect(await work(3, 40)).toEqual([5, 1, 1]);
    expect(await work(3, 1)).toEqual([1, 2, 4]);
  });

  it('each but the first begins on a turn of its own', async () => {
    const { clock, work } = setUp(100);
    await work(7, 1);
    expect(clock.turns).toBe(6);
  });
});
