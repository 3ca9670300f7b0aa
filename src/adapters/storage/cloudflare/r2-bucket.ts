/** Objects in R2, through the binding of a Worker. */

import {
  checkKey,
  isPlainText,
  MAX_KEY_BYTES,
  type ObjectStore,
  type StoredObject,
} from '../../../engine/storage/data.port.ts';
import { objectTooLarge, readPages } from '../bounded-reads.ts';
import { uploadInParts } from '../upload-in-parts.ts';
import { wellFormed } from '../well-formed.ts';
import { withBindingErrors } from './failure.ts';

/** What R2 keeps with an object. */
export interface R2Description {
  readonly httpMetadata?: { readonly contentType?: string };
  readonly customMetadata?: Readonly<Record<string, string>>;
}

/** What the store needs of a bucket. The binding of a Worker has it. */
export interface R2BucketBinding {
  get(key: string): Promise<R2StoredObject | null>;
  head(key: string): Promise<unknown>;
  put(key: string, value: Uint8Array, options: R2Description): Promise<unknown>;
  delete(key: string): Promise<void>;
  list(options: {
    prefix: string;
    limit: number;
    startAfter?: string;
    cursor?: string;
  }): Promise<{ objects: readonly { key: string }[]; truncated: boolean; cursor?: string }>;
  createMultipartUpload(key: string, options: R2Description): Promise<R2Upload>;
}

export interface R2StoredObject extends R2Description {
  readonly uploaded: Date;
  /** Bytes. */
  readonly size?: number;
  readonly body?: { cancel(): Promise<void> } | null;
  arrayBuffer(): Promise<ArrayBuffer>;
}

export interface R2UploadedPart {
  readonly partNumber: number;
  readonly etag: string;
}

export interface R2Upload {
  uploadPart(partNumber: number, value: Uint8Array): Promise<R2UploadedPart>;
  complete(parts: R2UploadedPart[]): Promise<unknown>;
  abort(): Promise<void>;
}

/** The most objects that R2 lists at once. */
const PAGE = 1000;
const METHODS = ['get', 'head', 'put', 'delete', 'list', 'createMultipartUpload'] as const;

/**
 * Objects in R2, for bindings of `operation: storage`.
 *
 * @param bucket - the binding of the Worker, such as `env.REPORTS`. Outside of Workers, use `s3Objects`
 * @throws TypeError if it is not a bucket
 * @example
 * ```ts no-run
 * import { createOrchestrator } from 'ensemble-orchestrator';
 * import { r2Bucket, type R2BucketBinding } from 'ensemble-orchestrator/cloudflare';
 *
 * const create = (env: { REPORTS: R2BucketBinding }) => createOrchestrator({ bindings: { reports: r2Bucket(env.REPORTS) } });
 * ```
 */
export function r2Bucket(bucket: R2BucketBinding): Required<Omit<ObjectStore, 'ready'>> {
  if (METHODS.some((method) => typeof bucket?.[method] !== 'function')) {
    throw new TypeError('r2Bucket: pass the R2 bucket of the Worker, such as `env.REPORTS`');
  }
  const call = <T>(run: () => Promise<T>, signal?: AbortSignal) => withBindingErrors('r2Bucket', run, signal);
  return {
    kind: 'objects',
    get: (key, { maxBytes = Number.POSITIVE_INFINITY } = {}) =>
      call(async () => {
        const found = await bucket.get(checkKey(key));
        if (found && (found.size ?? 0) > maxBytes) {
          await found.body?.cancel();
          throw objectTooLarge(maxBytes);
        }
        return found ? toObject(found, await found.arrayBuffer()) : undefined;
      }),
    put: (key, { content, ...about }) =>
      call(async () => {
        await bucket.put(checkKey(key), content, toR2Description(about));
      }),
    putStream: async (key, { content, ...about }) => upload(bucket, checkKey(key), content, toR2Description(about)),
    delete: (key) =>
      call(async () => {
        const isStored = (await bucket.head(checkKey(key))) !== null;
        if (isStored) await bucket.delete(key);
        return isStored;
      }),
    list: ({ prefix = '', after, limit, signal }) =>
      call(async () => {
        if (!isPlainText(prefix)) return [];
        // No key has a NUL. Those after a text with one are those after the text before it.
        const startAfter = after === undefined ? '' : wellFormed(after).split('\u0000', 1)[0];
        const keys: string[] = [];
        await readPages<string>(signal, async (cursor) => {
          const page = await bucket.list({
            ...{ prefix, limit: Math.min(limit - keys.length, PAGE) },
            ...(cursor !== undefined ? { cursor } : startAfter && { startAfter }),
          });
          keys.push(...page.objects.map(({ key }) => key).filter(isKey));
          const isOver = !page.truncated || keys.length >= limit;
          return { found: page.objects.length, place: isOver ? undefined : page.cursor };
        });
        return keys;
      }, signal),
  };
}

/** Another program may have stored longer names. */
function isKey(name: string): boolean {
  return new TextEncoder().encode(name).length <= MAX_KEY_BYTES && isPlainText(name);
}

type About = Pick<StoredObject, 'contentType' | 'updatedAt'>;

// The type that R2 sends to browsers has plain characters only. The exact one is kept apart.
function toR2Description({ contentType, updatedAt }: About): R2Description {
  const isPlain = /^[!-~]+\/[!-~ ]*[!-~]$/.test(contentType);
  return {
    httpMetadata: { contentType: isPlain ? contentType : 'application/octet-stream' },
    customMetadata: { contentType: encodeURIComponent(wellFormed(contentType)), updatedAt: String(updatedAt) },
  };
}

/** An object that another program has stored has the type and the time that R2 gives it. */
function toObject({ httpMetadata, customMetadata, uploaded }: R2StoredObject, content: ArrayBuffer): StoredObject {
  const { contentType, updatedAt } = customMetadata ?? {};
  const own = Number(updatedAt);
  return {
    content: new Uint8Array(content),
    contentType: decode(contentType) ?? httpMetadata?.contentType ?? 'application/octet-stream',
    updatedAt: updatedAt !== undefined && Number.isFinite(own) ? own : uploaded.getTime(),
  };
}

function decode(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Stores a stream: as one object, or in parts, which R2 shows when the upload is completed. @returns the number of bytes */
async function upload(
  bucket: R2BucketBinding,
  key: string,
  content: AsyncIterable<Uint8Array>,
  description: R2Description,
): Promise<number> {
  const call = <T>(run: () => Promise<T>) => withBindingErrors('r2Bucket', run);
  return uploadInParts<R2UploadedPart>(content, {
    whole: (bytes) => call(() => bucket.put(key, bytes, description)),
    async begin() {
      const upload = await call(() => bucket.createMultipartUpload(key, description));
      return {
        add: (part, number) => call(() => upload.uploadPart(number, part)),
        complete: (parts) => call(() => upload.complete([...parts])),
        // What can't be aborted now is deleted by R2 after a week.
        abort: () => upload.abort().catch(() => undefined),
      };
    },
  });
}
