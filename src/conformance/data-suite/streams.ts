/** Data suite: objects whose bytes come one part after the other. A store without `putStream` passes. */

import type { ObjectStore, StoredObject } from '../../engine/storage/data.port.ts';
import type { DeclareCase } from '../declare-cases.ts';
import { same } from '../storage-suite/context.ts';
import { T0 } from './keys.ts';

type StreamStore = ObjectStore & Required<Pick<ObjectStore, 'putStream'>>;

const ABOUT = { contentType: 'text/csv; header=present', updatedAt: T0 + 3 };
const OLD: StoredObject = { content: new Uint8Array([1, 2, 3]), contentType: 'text/plain', updatedAt: T0 };

async function* partsOf(...parts: readonly (ArrayLike<number> | Error)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Error) throw part;
    yield new Uint8Array(part);
  }
}

/** Parts of different sizes, all in one array, which is overwritten for the next part. @returns the parts and all of their bytes */
function reusedParts(size: number): { readonly parts: AsyncIterable<Uint8Array>; readonly all: Uint8Array } {
  const all = Uint8Array.from({ length: size }, (_, i) => (i * 31 + (i >> 8)) % 256);
  async function* parts() {
    const shared = new Uint8Array(100_003);
    for (let [at, step] = [0, 1]; at < size; at += step, step = Math.min(step * 7, shared.length)) {
      const part = all.subarray(at, at + step);
      shared.set(part);
      yield shared.subarray(0, part.length);
      shared.fill(0);
    }
  }
  return { parts: parts(), all };
}

async function thrownBy(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call();
  } catch (thrown) {
    return thrown;
  }
  return undefined;
}

const shown = (found: StoredObject | undefined) =>
  found && { content: Array.from(found.content), contentType: found.contentType, updatedAt: found.updatedAt };

/** Declares the cases on stores that take streams. */
function onStreams(it: DeclareCase<ObjectStore>): DeclareCase<StreamStore> {
  return (name, body) =>
    it(name, async (objects, reopen) => {
      if (objects.putStream) await body(objects as StreamStore, async () => (await reopen()) as StreamStore);
    });
}

export function streamCases(declare: DeclareCase<ObjectStore>): void {
  const it = onStreams(declare);

  it('putStream: content, type and time come back unchanged, and the answer is the number of bytes', async (objects) => {
    const content = partsOf([1, 2], [], [3]);
    same(await objects.putStream('a', { ...ABOUT, content }), 3, 'number of bytes');
    same(shown(await objects.get('a')), { ...ABOUT, content: [1, 2, 3] }, 'object');
    same(await objects.list({ limit: 10, now: T0 }), ['a'], 'keys');
  });

  it('putStream: an empty stream is an empty object', async (objects) => {
    same(await objects.putStream('a', { ...ABOUT, content: partsOf() }), 0, 'number of bytes');
    same(shown(await objects.get('a')), { ...ABOUT, content: [] }, 'object');
  });

  it('putStream: 10 MB in parts of many sizes are stored in their order, although the source uses its array again', async (objects) => {
    const { parts, all } = reusedParts(10_000_019);
    same(await objects.putStream('a', { ...ABOUT, content: parts }), all.length, 'number of bytes');
    const found = (await objects.get('a'))?.content;
    same([found?.length, found?.every((byte, i) => byte === all[i])], [all.length, true], 'content');
  });

  it('putStream: replaces an object, and `put` replaces a streamed one', async (objects) => {
    await objects.put('a', { ...OLD, content: OLD.content.slice() });
    await objects.putStream('a', { ...ABOUT, content: partsOf([9]) });
    same(shown(await objects.get('a')), { ...ABOUT, content: [9] }, 'streamed object');
    await objects.put('a', { ...OLD, content: OLD.content.slice() });
    same(shown(await objects.get('a')), shown(OLD), 'object');
  });

  it('putStream: nothing is stored of a stream that throws, and the error is its own', async (objects) => {
    const broken = new RangeError('the source broke');
    for (const parts of [[broken], [[1, 2], broken], [new Uint8Array(9_000_000).fill(7), broken]]) {
      const content = partsOf(...parts);
      same((await thrownBy(() => objects.putStream('a', { ...ABOUT, content }))) === broken, true, 'its error');
      same(shown(await objects.get('a')), undefined, 'object');
      same(await objects.list({ limit: 10, now: T0 }), [], 'keys');
    }
  });

  it('putStream: an object stays as it was when the stream that should replace it throws', async (objects) => {
    await objects.put('a', { ...OLD, content: OLD.content.slice() });
    const content = partsOf([7], new Uint8Array(9_000_000).fill(7), new Error('the source broke'));
    await thrownBy(() => objects.putStream('a', { ...ABOUT, content }));
    same(shown(await objects.get('a')), shown(OLD), 'object');
  });

  it('putStream: an object stays readable as it was until the stream has ended', async (objects) => {
    await objects.put('a', { ...OLD, content: OLD.content.slice() });
    const seen: unknown[] = [];
    async function* content() {
      yield Uint8Array.of(7);
      seen.push(shown(await objects.get('a')));
      yield Uint8Array.of(8);
    }
    await objects.putStream('a', { ...ABOUT, content: content() });
    same(seen, [shown(OLD)], 'the object meanwhile');
    same(shown(await objects.get('a')), { ...ABOUT, content: [7, 8] }, 'the object then');
  });

  it('putStream: refuses a key that not every store can hold', async (objects) => {
    for (const key of ['', 'x'.repeat(513), 'a\u0000b', 'a\ud83d']) {
      const thrown = await thrownBy(() => objects.putStream(key, { ...ABOUT, content: partsOf([1]) }));
      same((thrown as { code?: unknown } | undefined)?.code, 'INVALID_REQUEST', JSON.stringify(key.slice(0, 10)));
    }
    same(await objects.list({ limit: 10, now: T0 }), [], 'keys');
  });

  it('putStream: concurrent streams to one key store one of them, whole', async (objects) => {
    const streams = [1, 2, 3, 4].map((byte) => ({
      ...{ contentType: `text/x-${byte}`, updatedAt: T0 + byte },
      content: partsOf([byte], new Uint8Array(70_000).fill(byte), [byte]),
    }));
    await Promise.all(streams.map((stream) => objects.putStream('a', stream)));
    const found = await objects.get('a');
    const byte = found?.content[0] ?? 0;
    same([found?.contentType, found?.updatedAt], [`text/x-${byte}`, T0 + byte], 'type and time');
    same([found?.content.length, found?.content.every((one) => one === byte)], [70_002, true], 'content');
  });
}

/** For stores that outlive their handle. */
export function reopenedStreamCases(declare: DeclareCase<ObjectStore>): void {
  const it = onStreams(declare);

  it('reopen: streamed objects are unchanged, and nothing is there of a stream that threw', async (objects, reopen) => {
    const { parts, all } = reusedParts(300_000);
    await objects.putStream('whole', { ...ABOUT, content: parts });
    await thrownBy(() => objects.putStream('broken', { ...ABOUT, content: partsOf([1], new Error('broken')) }));
    const next = await reopen();
    same(await next.list({ limit: 10, now: T0 }), ['whole'], 'keys');
    const found = await next.get('whole');
    same([found?.contentType, found?.updatedAt], [ABOUT.contentType, ABOUT.updatedAt], 'type and time');
    same([found?.content.length, found?.content.every((byte, i) => byte === all[i])], [all.length, true], 'content');
  });
}
