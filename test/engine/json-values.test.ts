/** Values of callers and scripts are taken as JSON takes them, and what JSON would lose without a word is refused. */

import { describe, expect, it } from 'vitest';
import { copyJson, copySized, MAX_DEPTH } from '../../src/engine/base/json/json.ts';
import { code, echo, scene } from './scene.ts';

const AT = new Date(Date.UTC(2030, 0, 31));
const ISO = '2030-01-31T00:00:00.000Z';

class Money {
  readonly cents: number;
  readonly #currency = 'EUR';
  constructor(cents: number) {
    this.cents = cents;
  }
  toJSON() {
    return { cents: this.cents, currency: this.#currency, paidAt: AT };
  }
}
const MONEY = { cents: 5, currency: 'EUR', paidAt: ISO };

describe('dates and objects with toJSON', () => {
  it('in an input', async () => {
    const { run } = scene([echo('a', { all: '${input}', later: '${addTime(input.at, 1, "day")}' })]);
    const { input, agents } = await run({ at: AT, list: [AT, new Money(5)], none: undefined });
    expect(input).toEqual({ at: ISO, list: [ISO, MONEY] });
    expect(agents[0]?.output).toEqual({ all: input, later: '2030-02-01T00:00:00.000Z' });
  });

  it('in the output of a script, and through it in the state', async () => {
    const { run } = scene(
      {
        state: { initial: { last: null } },
        flow: [code('a', 'pay', { setState: { last: '${a.output.at}' } })],
        outputs: { paid: '${a.output}', last: '${state.last}' },
      },
      { scripts: { pay: () => ({ at: AT, price: new Money(5), list: [undefined, AT] }) } },
    );
    expect((await run()).output).toEqual({ paid: { at: ISO, price: MONEY, list: [null, ISO] }, last: ISO });
  });

  it('in the payload of a signal', async () => {
    const { orchestrator, start } = scene({ flow: [{ wait: 'go', name: 'got' }], outputs: { got: '${got.output}' } });
    const handle = await start();
    await orchestrator.executions.signal(handle.id, 'go', { at: AT, by: undefined });
    expect((await handle.result()).output).toEqual({ got: { at: ISO } });
  });

  it('an input that is a date itself', () => {
    expect(copyJson(AT)).toBe(ISO);
    expect(copyJson(new URL('https://example.com/a'))).toBe('https://example.com/a');
  });

  it('gives what JSON.stringify gives, where that loses nothing', () => {
    const own = { x: 1, toJSON: () => ({ y: AT }) };
    const again = {
      x: 1,
      toJSON() {
        return { ...this };
      },
    };
    const values = [
      AT,
      own,
      again,
      new Money(1),
      [new Money(2), { a: own }],
      { toJSON: 'text' },
      { toJSON: () => undefined },
    ];
    for (const value of [...values, values, Buffer.from('x')]) {
      expect(copyJson({ value })).toEqual(JSON.parse(JSON.stringify({ value })));
    }
  });

  it('counts the size and the depth of what toJSON gives', () => {
    expect(copySized({ at: AT }).bytes).toBe(copySized({ at: ISO }).bytes);
    expect(copySized({ x: { a: 1, toJSON: () => ({ b: [2] }) } }).bytes).toBe(copySized({ x: { b: [2] } }).bytes);
    const big = { toJSON: () => 'x'.repeat(5_000_000) };
    expect(() => copyJson({ big })).toThrow('larger than the limit of 4 MiB');
    const endless: object = { toJSON: () => ({ inner: endless }) };
    expect(() => copyJson(endless)).toThrow('contains itself (a cycle)');
    const fresh = (): object => ({ toJSON: () => ({ inner: fresh() }) });
    expect(() => copyJson(fresh())).toThrow(`nested deeper than ${MAX_DEPTH} levels`);
  });
});

describe('what JSON would lose is refused, with what to do', () => {
  class Point {
    readonly x = 1;
  }
  it.each<[string, unknown, string]>([
    ['an invalid date', new Date(Number.NaN), 'is an invalid Date; use null, or a valid date'],
    ['a Map', new Map([['a', 1]]), 'is a Map (use Object.fromEntries(map)), not plain data'],
    ['a Set', new Set([1]), 'is a Set (use [...set]), not plain data'],
    ['an Error', new Error('no'), 'is an Error (use error.message), not plain data'],
    ['a class instance', new Point(), 'is a Point without toJSON(), not plain data'],
    ['bytes', new Uint8Array(2), 'is a Uint8Array without toJSON(), not plain data'],
    ['a BigInt', 1n, 'is a BigInt, which JSON does not have; use a string'],
    ['a function', () => 1, 'is a function, which JSON does not have; leave it out'],
    ['Infinity', Number.POSITIVE_INFINITY, "is Infinity, which JSON can't hold; use null or a string"],
  ])('%s', (_what, value, message) => {
    expect(() => copyJson({ list: [0, { value }] })).toThrow(`list[1].value ${message}`);
    expect(() => copyJson({ list: [0, { value: { toJSON: () => value } }] })).toThrow('list[1].value is');
  });
});
