/** Which values are accepted as JSON by a run, and how their size is counted. */

import { describe, expect, it } from 'vitest';
import { copyJson, copySized, MAX_VALUE_BYTES } from '../../src/engine/base/json/json.ts';
import { ok, scene } from './scene.ts';

describe('a value that JSON does not have is refused, with its path', () => {
  it.each<[string, unknown, string]>([
    ['a function', () => 1, 'is a function, which JSON does not have'],
    ['a symbol', Symbol('x'), 'is a symbol, which JSON does not have'],
    ['a BigInt', 1n, 'is a BigInt, which JSON does not have'],
    ['an invalid Date', new Date(Number.NaN), 'is an invalid Date'],
    ['a Map', new Map(), 'is a Map (use Object.fromEntries(map))'],
    ['a Set', new Set(), 'is a Set (use [...set])'],
    ['NaN', Number.NaN, "is NaN, which JSON can't hold"],
  ])('%s in an input and in the payload of a signal', async (_what, value, message) => {
    const { orchestrator, start } = scene([{ wait: 'go' }, ok('a')]);
    const { id } = await start();
    const bad = { list: [1, { value }] };
    const refused = { code: 'INVALID_INPUT', message: expect.stringContaining(`list[1].value`) };
    await expect(orchestrator.execute('e', bad)).rejects.toMatchObject(refused);
    await expect(orchestrator.start('e', bad)).rejects.toMatchObject(refused);
    await expect(orchestrator.executions.signal(id, 'go', bad)).rejects.toMatchObject(refused);
    await expect(orchestrator.executions.signal(id, 'go', bad)).rejects.toThrow(message);
    expect((await orchestrator.executions.list()).executions).toHaveLength(1);
    await orchestrator.executions.cancel(id);
  });

  it('undefined is accepted: a property is left out, elsewhere it is null', () => {
    expect(copyJson(undefined)).toBeNull();
    expect(copyJson({ a: undefined, b: [undefined] })).toStrictEqual({ b: [null] });
  });
});

describe('the size of a value is what it takes in memory', () => {
  it('32 bytes for a container, 16 for an entry, and the length of keys and strings', () => {
    expect(copySized({ ab: ['xyz', 1, null], c: {} })).toMatchObject({ bytes: 32 + 18 + 32 + 3 * 16 + 3 + 17 + 32 });
    for (const scalar of [null, undefined, true, 7]) expect(copySized(scalar).bytes).toBe(0);
    expect(copySized('four').bytes).toBe(4);
    expect(copySized('four', 4).value).toBe('four');
    for (const take of [copyJson, copySized]) expect(() => take('four', 3)).toThrow('larger than the limit of 3 bytes');
  });

  it('a megabyte of empty objects is larger than an input may be, and the message says how the size is counted', async () => {
    const a = Array.from({ length: 333_000 }, () => ({}));
    await expect(scene([]).run({ a })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringMatching(/`e` .*larger than the limit of 4 MiB \(an array or object counts 32 bytes/),
    });
  });

  it('no value within the limit has more than 90,000 containers, and 100,000 ids fit', () => {
    const fits = (length: number, make: (i: number) => unknown) =>
      copySized(Array.from({ length }, (_, i) => make(i))).bytes <= MAX_VALUE_BYTES;
    expect(() => fits(90_000, () => [])).toThrow('larger than the limit');
    expect(fits(100_000, (i) => `customer-${i}`)).toBe(true);
  });
});
