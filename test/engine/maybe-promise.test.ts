/** Values that may be promises. */

import { describe, expect, it } from 'vitest';
import { andThen, isPromise } from '../../src/engine/base/maybe-promise.ts';

describe('values that may be promises', () => {
  it('a promise, and any other object with a method `then`, has to be awaited; data with a key `then` is a value', () => {
    const [builder, data] = [{ then: (resolve: (value: number) => void) => resolve(1) }, { then: [1] }];
    expect([Promise.resolve(1), builder].map((value) => isPromise<unknown>(value))).toEqual([true, true]);
    expect([undefined, null, 1, 'then', data, []].map((value) => isPromise<unknown>(value))).toEqual(
      Array(6).fill(false),
    );
  });

  it('a value continues at once, a promise when it resolves', async () => {
    expect(andThen(1, (value) => value + 1)).toBe(2);
    expect(await andThen(Promise.resolve(1), (value) => value + 1)).toBe(2);
  });

  it('the error of a promise goes to `onError`, or to the caller; what `onValue` throws goes to the caller', async () => {
    const rejected = Promise.reject(new Error('no'));
    expect(await andThen(rejected, () => 'value', String)).toBe('Error: no');
    await expect(andThen(rejected, () => 'value')).rejects.toThrow('no');
    const fail = () => {
      throw new Error('later');
    };
    await expect(andThen(Promise.resolve(), fail, String)).rejects.toThrow('later');
    expect(() => andThen(undefined, fail, String)).toThrow('later');
  });
});
