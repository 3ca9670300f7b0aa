/** Stores an object whose bytes come one part after the other. S3 shows it when the upload is completed. */

import { OrchestratorError } from '../../../engine/base/errors.ts';
import { PART_BYTES, uploadInParts } from '../upload-in-parts.ts';
import type { SendToS3 } from './client.ts';
import { codeOfAnswer, toS3Failure } from './failure.ts';
import { escapeXml, readText } from './read-xml.ts';

/** The most parts that S3 takes. */
const MAX_PARTS = 10_000;

interface Upload {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Stores an object that fits one part. */
  readonly whole: (bytes: Uint8Array) => Promise<void>;
}

/** @returns the number of bytes */
export async function uploadParts(
  send: SendToS3,
  content: AsyncIterable<Uint8Array>,
  { name, headers, whole }: Upload,
): Promise<number> {
  return uploadInParts<string>(content, {
    whole,
    async begin() {
      const uploadId = await beginUpload(send, name, headers);
      return {
        async add(part, number) {
          if (number > MAX_PARTS) throw tooLargeObject();
          return sendPart(send, { name, uploadId, number, part });
        },
        complete: (tags) => complete(send, name, uploadId, tags),
        abort: () => abort(send, name, uploadId),
      };
    },
  });
}

async function beginUpload(send: SendToS3, name: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const response = await send({ action: 'put', method: 'POST', name, query: { uploads: '' }, headers });
  const uploadId = readText(new TextDecoder().decode(response.body), 'UploadId');
  if (response.status !== 200 || uploadId === undefined) throw toS3Failure('put', response);
  return uploadId;
}

interface Part {
  readonly name: string;
  readonly uploadId: string;
  readonly number: number;
  readonly part: Uint8Array;
}

async function sendPart(send: SendToS3, { name, uploadId, number, part }: Part): Promise<string> {
  const query = { partNumber: String(number), uploadId };
  const response = await send({ action: 'put', method: 'PUT', name, query, body: part });
  const tag = response.headers.etag;
  if (response.status !== 200 || tag === undefined) throw toS3Failure('put', response);
  return tag;
}

async function complete(send: SendToS3, name: string, uploadId: string, tags: readonly string[]): Promise<void> {
  const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escapeXml(tag)}</ETag></Part>`);
  const body = new TextEncoder().encode(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`);
  const headers = { 'content-type': 'application/xml' };
  const response = await send({ action: 'put', method: 'POST', name, query: { uploadId }, body, headers });
  // S3 may answer a failure with the status 200.
  if (response.status !== 200 || codeOfAnswer(response) !== '') throw toS3Failure('put', response);
}

/** What can't be aborted now is left in the bucket, until a rule of the bucket deletes unfinished uploads. */
async function abort(send: SendToS3, name: string, uploadId: string): Promise<void> {
  await send({ action: 'put', method: 'DELETE', name, query: { uploadId } }).catch(() => undefined);
}

function tooLargeObject(): OrchestratorError {
  const gib = Math.floor((PART_BYTES * MAX_PARTS) / 2 ** 30);
  return new OrchestratorError('INVALID_REQUEST', `s3Objects: the object is larger than ${gib} GiB`);
}
