/** Workers KV and R2 that never come to an end, or have more than is wanted. */

import { describe, expect, it } from 'vitest';
import { hostTurn } from '../../src/adapters/clock/manual-clock.ts';
import { kvNamespace, r2Bucket } from '../../src/entries/cloudflare.ts';

const nothing = async () => null as never;
const object = (size: number, read: () => void) => ({
  size,
  uploaded: new Date(0),
  body: { cancel: async () => {} },
  async arrayBuffer() {
    read();
    return new ArrayBuffer(size);
  },
});

/** @param answer - an empty page, or one with a key, that says that there is more */
function endless(keys: number, onAsked: (times: number) => void = () => {}) {
  let asked = 0;
  const names = () => Array.from({ length: keys }, (_, i) => ({ key: `k${asked}-${i}`, name: `k${asked}-${i}` }));
  const list = async () => {
    asked += 1;
    onAsked(asked);
    await hostTurn();
    return { objects: names(), keys: names(), truncated: true, list_complete: false, cursor: `place ${asked}` };
  };
  const kv = kvNamespace({ getWithMetadata: nothing, put: nothing, delete: nothing, list } as never);
  const bucket = { get: nothing, head: nothing, put: nothing, delete: nothing, createMultipartUpload: nothing, list };
  const r2 = r2Bucket(bucket as never);
  return {
    asked: () => asked,
    lists: {
      KV: (signal?: AbortSignal) => kv.list({ now: 0, limit: 1_000, ...(signal && { signal }) }),
      R2: (signal?: AbortSignal) => r2.list({ now: 0, limit: 1_000, ...(signal && { signal }) }),
    },
  };
}

describe.each(['KV', 'R2'] as const)('a list of %s', (store) => {
  it('fails when the server says again and again that there is more, and lists nothing', async () => {
    const { lists, asked } = endless(0);
    await expect(lists[store]()).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true });
    expect(asked()).toBe(21);
  });

  it('ends with the attempt that asked for it', async () => {
    const stop = new AbortController();
    const { lists, asked } = endless(1, (times) => times === 5 && stop.abort(new Error('over')));
    await expect(lists[store](stop.signal)).rejects.toThrow('over');
    for (let turn = 0; turn < 20; turn += 1) await hostTurn();
    expect(asked()).toBe(5);
  });

  it('ends with as many keys as are wanted', async () => {
    const { lists, asked } = endless(100);
    expect((await lists[store]()).length).toBe(1_000);
    expect(asked()).toBe(10);
  });
});

it('an object of R2 that is larger than its reader takes is not read', async () => {
  let reads = 0;
  const get = async () => object(1_000, () => (reads += 1));
  const bucket = { head: nothing, put: nothing, delete: nothing, createMultipartUpload: nothing, list: nothing, get };
  const r2 = r2Bucket(bucket as never);
  await expect(r2.get('k', { maxBytes: 999 })).rejects.toMatchObject({ code: 'INVALID_OUTPUT' });
  expect(reads).toBe(0);
  expect((await r2.get('k', { maxBytes: 1_000 }))?.content.byteLength).toBe(1_000);
});
