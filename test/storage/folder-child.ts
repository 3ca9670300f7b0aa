/** A process that replaces an object without end, until it is killed. `folder-child.ts <folder> put|stream` */

import { folderObjects } from '../../src/adapters/storage/folder/folder-objects.ts';

const [folder = '', how] = process.argv.slice(2);
const objects = folderObjects(folder);
const SIZE = 400_000;

async function* slowly(byte: number) {
  for (let part = 0; part < 10; part++) {
    yield new Uint8Array(SIZE / 10).fill(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

for (let round = 0; ; round++) {
  const byte = round % 251;
  const about = { contentType: `text/x-${byte}`, updatedAt: byte };
  if (how === 'stream') await objects.putStream('a/object', { ...about, content: slowly(byte) });
  else await objects.put('a/object', { ...about, content: new Uint8Array(SIZE).fill(byte) });
  if (round === 0) process.stdout.write('ready\n');
}
