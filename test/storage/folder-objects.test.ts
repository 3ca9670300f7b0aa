/** Objects in a folder: the published suite, the names of files, damage, and processes that die while they write. */

import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { pathOf, toEntry } from '../../src/adapters/storage/folder/file-names.ts';
import { memoryObjects } from '../../src/adapters/storage/memory/data.ts';
import { dataSuite } from '../../src/conformance/data-suite.ts';
import { folderObjects } from '../../src/entries/node.ts';
import { buildChildren, startChild } from './sqlite-children.ts';

const base = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ensemble-folder-'));
afterAll(() => rmSync(base, { recursive: true, force: true }));

let folders = 0;
let folder = '';
const newFolder = () => {
  folders += 1;
  return join(base, String(folders), 'objects');
};
const reopen = () => ({ objects: folderObjects(folder) });
const create = () => {
  folder = newFolder();
  return reopen();
};
dataSuite({ name: 'folderObjects', create, reopen, kinds: ['objects'], test: { describe, it } });

const text = (content: string, updatedAt = 0) => ({
  content: new TextEncoder().encode(content),
  contentType: 'text/plain',
  updatedAt,
});
const filesIn = (path: string) =>
  readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;

describe('the names of files', () => {
  const key = fc
    .array(
      fc.oneof(
        fc.constantFrom('.', '..', '/', '//', 'A', 'a', 'con', 'nul.txt', '~', '+', '%', '-', ' ', '\u0001', 'ä', 'z.'),
        fc.constantFrom('x'.repeat(195), 'x'.repeat(197), 'x'.repeat(199), 'x'.repeat(200)),
      ),
      { minLength: 1, maxLength: 5 },
    )
    .map((parts) => parts.join('').slice(0, 500));

  it('are safe on every file system, and different for different keys, also where case does not count', () => {
    fc.assert(
      fc.property(fc.uniqueArray(key, { maxLength: 8 }), (keys) => {
        const paths = keys.map((one) => pathOf(one));
        for (const name of paths.flat()) {
          expect(name.length).toBeLessThanOrEqual(210);
          expect(name).toMatch(/^[a-z0-9_%-][a-z0-9_%.-]*[~+]?$/);
          expect(name).not.toMatch(/[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/);
          expect(toEntry(name)).toBeDefined();
        }
        expect(new Set(paths.map((path) => path.join('/').toLowerCase())).size).toBe(keys.length);
      }),
      { numRuns: 300 },
    );
  });

  it('keep the order of keys, and their prefixes and pages, for any keys', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(key, { maxLength: 8 }), key, async (keys, other) => {
        const [objects, expected] = [folderObjects(newFolder()), memoryObjects()];
        for (const one of keys) {
          await objects.put(one, text(one));
          await expected.put(one, text(one));
        }
        for (const page of [{}, { prefix: other }, { after: other }, { prefix: other.slice(0, 2), after: keys[0] }]) {
          const asked = { limit: 5, now: 0, ...page };
          expect(await objects.list(asked as never)).toEqual(await expected.list(asked as never));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('keep the order of keys with a dot where a name is full', async () => {
    for (let length = 194; length <= 201; length++) {
      const { objects } = create();
      const keys = ['.', '.-b', './foo', '.0'].map((end) => 'x'.repeat(length) + end);
      for (const one of keys) await objects.put(one, text(one));
      expect(await objects.list({ limit: 10, now: 0 })).toEqual(keys);
    }
  });

  it('of other programs are ignored, and stay', async () => {
    const { objects } = create();
    await objects.put('a/b', text('b'));
    for (const name of ['.DS_Store', 'Thumbs.db', 'READ ME~', 'a/note.TXT']) writeFileSync(join(folder, name), 'x');
    mkdirSync(join(folder, 'Empty Folder'));
    expect(await objects.list({ limit: 10, now: 0 })).toEqual(['a/b']);
    await objects.delete('a/b');
    expect(readFileSync(join(folder, 'a/note.TXT'), 'utf8')).toBe('x');
  });

  it('are readable for plain keys', () => {
    expect(pathOf('reports/2026-01/total.json')).toEqual(['reports', '2026-01', 'total.json~']);
  });
});

describe('the folder', () => {
  it('has no file and no folder left of objects that were deleted, replaced or failed', async () => {
    const { objects } = create();
    await objects.put('a/b/c', text('1'));
    await objects.put('a/b/c', text('2'));
    expect(filesIn(folder)).toBe(1);
    await objects.delete('a/b/c');
    const failing = (async function* () {
      yield new Uint8Array(1000);
      throw new Error('the source broke');
    })();
    const stream = { ...text(''), content: failing };
    await expect(objects.putStream('x', stream)).rejects.toThrow('the source broke');
    expect(filesIn(folder)).toBe(0);
    expect(readdirSync(folder)).toEqual(['.unfinished']);
  });

  it('loses what a process left unfinished a day ago, and keeps what is younger', async () => {
    folder = newFolder();
    mkdirSync(join(folder, '.unfinished'), { recursive: true });
    for (const name of ['old', 'young']) writeFileSync(join(folder, '.unfinished', name), 'x');
    utimesSync(join(folder, '.unfinished/old'), 0, Date.now() / 1000 - 90_000);
    await reopen().objects.put('a', text('a'));
    expect(readdirSync(join(folder, '.unfinished'))).toEqual(['young']);
  });

  it('takes puts and deletes of neighbours at the same time, of two stores', async () => {
    folder = newFolder();
    const stores = [reopen().objects, reopen().objects];
    const work = stores.flatMap((objects, i) =>
      Array.from({ length: 40 }, async (_, n) => {
        await objects.put(`deep/er/${i}-${n}`, text('x'));
        if (n % 2 === 0) await objects.delete(`deep/er/${i}-${n}`);
      }),
    );
    await Promise.all(work);
    expect(await stores[0]?.list({ limit: 1000, now: 0 })).toHaveLength(40);
  });

  it('that is a file is NOT_CONFIGURED, with its path', async () => {
    const file = join(base, 'a-file');
    writeFileSync(file, '');
    await expect(folderObjects(file).put('a', text('a'))).rejects.toMatchObject({
      code: 'NOT_CONFIGURED',
      message: expect.stringContaining(file),
    });
    expect(() => folderObjects('')).toThrow(TypeError);
  });
});

describe('a damaged file', () => {
  it.each<[string, (file: Buffer) => Buffer]>([
    ['that is cut', (file) => file.subarray(0, -1)],
    ['that is empty', () => Buffer.alloc(0)],
    ['with a changed byte', (file) => Buffer.from(file.map((byte, i) => (i === 60 ? byte ^ 1 : byte)))],
    ['with another description', (file) => Buffer.from(file.toString('latin1').replace('text/', 'html/'), 'latin1')],
  ])('%s is reported with its key, and others are read', async (_how, damage) => {
    const { objects } = create();
    for (const key of ['a', 'b']) await objects.put(key, text('some content of the object'));
    writeFileSync(join(folder, 'a~'), damage(readFileSync(join(folder, 'a~'))));
    await expect(objects.get('a')).rejects.toMatchObject({ code: 'INTERNAL', message: /object a is damaged/ });
    expect((await objects.get('b'))?.content).toHaveLength(26);
    expect(await objects.delete('a')).toBe(true);
  });
});

describe('a process that is killed while it replaces an object', () => {
  buildChildren('test/storage/folder-child.ts');

  it.each(['put', 'stream'])('by %s leaves a whole object', async (how) => {
    folder = newFolder();
    for (let kill = 0; kill < 4; kill++) {
      const child = startChild(folder, how);
      await once(child.stdout as Readable, 'data');
      await new Promise((resolve) => setTimeout(resolve, 20 + kill * 13));
      child.kill('SIGKILL');
      await once(child, 'exit');
      const object = await reopen().objects.get('a/object');
      const byte = object?.updatedAt ?? -1;
      expect(object?.contentType).toBe(`text/x-${byte}`);
      expect(object?.content.length).toBe(400_000);
      expect(object?.content.every((one) => one === byte)).toBe(true);
    }
    expect(await reopen().objects.list({ limit: 10, now: 0 })).toEqual(['a/object']);
  });
});
