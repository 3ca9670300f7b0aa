/** The form of an object's file: a mark, the length of its description, the description as JSON, the bytes, and a checksum of it all. */

import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { OrchestratorError } from '../../../engine/base/errors.ts';
import type { StoredObject } from '../../../engine/storage/data.port.ts';

const MARK = 'EOB1';
const CHECKSUM_BYTES = 32;

type About = Pick<StoredObject, 'contentType' | 'updatedAt'>;

/** Writes an object to a file, part by part, and has the disk keep it. @returns the number of bytes of its content */
export async function writeObject(file: FileHandle, { contentType, updatedAt }: About, parts: Parts): Promise<number> {
  const checksum = createHash('sha256');
  const write = async (bytes: Uint8Array) => {
    checksum.update(bytes);
    await writeAll(file, bytes);
  };
  const about = new TextEncoder().encode(JSON.stringify({ contentType, updatedAt }));
  const head = new Uint8Array(8 + about.length);
  head.set(new TextEncoder().encode(MARK));
  new DataView(head.buffer).setUint32(4, about.length);
  head.set(about, 8);
  await write(head);
  let size = 0;
  for await (const part of parts) {
    size += part.length;
    await write(part);
  }
  await writeAll(file, checksum.digest());
  await file.sync();
  return size;
}

type Parts = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at, bytes.length - at)).bytesWritten;
}

/** @throws INTERNAL if the file is damaged */
export function readObject(file: Uint8Array, key: string): StoredObject {
  const end = file.length - CHECKSUM_BYTES;
  const checksum = createHash('sha256')
    .update(file.subarray(0, Math.max(end, 0)))
    .digest();
  const isMarked = end >= 8 && new TextDecoder().decode(file.subarray(0, 4)) === MARK;
  if (!isMarked || !checksum.equals(file.subarray(end))) {
    const message = `folderObjects: the file of object ${key} is damaged; restore it from a backup, or delete the object`;
    throw new OrchestratorError('INTERNAL', message, { details: { row: `object ${key}` } });
  }
  const start = 8 + new DataView(file.buffer, file.byteOffset).getUint32(4);
  const { contentType, updatedAt } = JSON.parse(new TextDecoder().decode(file.subarray(8, start))) as About;
  return { content: file.subarray(start, end), contentType, updatedAt };
}
