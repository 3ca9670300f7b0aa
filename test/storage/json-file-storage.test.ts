/** The storage of the guide "Write a storage of your own" passes the published suites. */

import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { callPart, createParts, type Storage } from '../../src/entries/adapter.ts';
import { dataSuite, engineSuite, storageSuite, tokenSuite } from '../../src/entries/conformance.ts';
import { ROOT, readBlocks } from '../docs/code-blocks.ts';
import { flowShare } from '../engine-suite/share.ts';

// Every change waits for the disk, which costs nothing on a disk in memory.
const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ensemble-json-'));
const generated = join(ROOT, 'test/storage/.generated');
const code = readBlocks().find(({ marks }) => marks.includes('json-file-storage.ts'))?.code;
mkdirSync(generated, { recursive: true });
writeFileSync(join(generated, 'json-file-storage.ts'), code ?? '');
const { jsonFileStorage } = (await import(/* @vite-ignore */ join(generated, 'json-file-storage.ts'))) as {
  jsonFileStorage(path: string): Storage;
};
afterAll(() => {
  rmSync(generated, { recursive: true });
  rmSync(folder, { recursive: true });
});

let files = 0;
let path: string;
const newPath = () => {
  files += 1;
  return join(folder, `${files}.jsonl`);
};
const create = () => {
  path = newPath();
  return jsonFileStorage(path);
};
const reopen = () => jsonFileStorage(path);
const test = { describe, it };

storageSuite({ name: 'jsonFileStorage', create, reopen, workers: 'many', handles: 'one', test });
tokenSuite({ name: 'jsonFileStorage', create, reopen, test });
dataSuite({ name: 'jsonFileStorage', create, reopen, test });

engineSuite({
  name: 'jsonFileStorage',
  create() {
    const file = newPath();
    let open = jsonFileStorage(file);
    return {
      // Each process opens the file again. Only one handle may be open, so the processes pass their calls to the latest one.
      connect() {
        open.close();
        open = jsonFileStorage(file);
        return {
          ...createParts(
            (part, method) =>
              (...args) =>
                callPart(open, part, method, args),
          ),
          capabilities: open.capabilities,
          commit: (worker, batch) => open.commit(worker, batch),
          close() {},
        };
      },
      end: () => open.close(),
    };
  },
  share: flowShare(),
  test,
});

describe('the file of jsonFileStorage', () => {
  it('may end in a line that a crash has torn: the call of that line had no effect', async () => {
    const first = create();
    await first.kv.put('a', 1);
    await first.close();
    appendFileSync(path, '["kv","put",{"0":"b","1":"\u6f22'.slice(0, -1));
    const next = reopen();
    expect([await next.kv.get('a', 0), await next.kv.get('b', 0)]).toEqual([1, undefined]);
    await next.kv.put('c', 3);
    await next.close();
    expect(await reopen().kv.list({ limit: 10, now: 0 })).toEqual(['a', 'c']);
  });

  it('that has another damaged line is refused', async () => {
    await create().close();
    writeFileSync(path, '["kv","put"\n["kv","put",{"0":"a","1":1}]\n');
    expect(reopen).toThrow(SyntaxError);
  });

  it('holds the latest value of each key only, once it was opened again', async () => {
    const first = create();
    for (let i = 0; i < 100; i++) await first.kv.put(`key-${i % 2}`, i);
    await first.objects.put('key-1', { content: new Uint8Array([1]), contentType: 'text/plain', updatedAt: 0 });
    await first.close();
    const next = reopen();
    expect(readFileSync(path, 'utf8').split('\n').length - 1).toBe(3);
    expect([await next.kv.get('key-0', 0), await next.kv.get('key-1', 0)]).toEqual([98, 99]);
    expect((await next.objects.get('key-1'))?.content).toEqual(new Uint8Array([1]));
  });
});
