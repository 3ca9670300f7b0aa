/** Streams for stores whose objects are values of one statement: the bytes are collected in memory first, up to a limit. */

import { joinBytes } from '../../engine/base/bytes/join-bytes.ts';
import { OrchestratorError } from '../../engine/base/errors.ts';
import { checkKey, type ObjectStore } from '../../engine/storage/data.port.ts';

/** The largest object that a stream may bring to these stores. */
const MAX_STREAMED_BYTES = 32 * 1024 * 1024;

/** Adds `putStream` to a store. */
export function withStreams(objects: ObjectStore): ObjectStore {
  return {
    ...objects,
    async putStream(key, { content, ...about }) {
      checkKey(key);
      const parts: Uint8Array[] = [];
      let size = 0;
      for await (const part of content) {
        size += part.length;
        if (size > MAX_STREAMED_BYTES) {
          const message = `this store takes streamed objects of at most ${MAX_STREAMED_BYTES} bytes; use folderObjects, s3Objects or r2Bucket for larger ones`;
          throw new OrchestratorError('INVALID_REQUEST', message, { details: { limit: MAX_STREAMED_BYTES } });
        }
        // The source may use its array again.
        parts.push(part.slice());
      }
      await objects.put(key, { ...about, content: joinBytes(parts) });
      return size;
    },
  };
}
