/** The failures of S3: which error an answer, or a lost connection, stands for. */

import { isOrchestratorError, messageOf, OrchestratorError } from '../../../engine/base/errors.ts';
import type { HttpResponse } from '../../../engine/host/http.port.ts';
import { readText } from './read-xml.ts';

/** Codes with which another call may pass, whatever their status is. */
const PASSING = ['SlowDown', 'InternalError', 'ServiceUnavailable', 'RequestTimeout', 'OperationAborted', 'Throttling'];
const PASSING_STATUS = [408, 409, 425, 429, 500, 502, 503, 504, 507];

/** What to check, by the code of S3. */
const REMEDIES: Readonly<Record<string, string>> = {
  AccessDenied: 'the keys need the rights to list the bucket, and to get, put and delete its objects',
  SignatureDoesNotMatch: 'check `secretAccessKey` and `region`',
  AuthorizationHeaderMalformed: 'check `region`',
  PermanentRedirect: 'the bucket is in another region; check `region` and `endpoint`',
  InvalidAccessKeyId: 'check `accessKeyId`',
  ExpiredToken: 'the session has expired; create the store with new keys',
  InvalidToken: 'check `sessionToken`',
  RequestTimeTooSkewed: 'set the clock of this computer',
  NoSuchBucket: 'create the bucket, or check `bucket` and `endpoint`',
};

export function codeOfAnswer({ body }: Pick<HttpResponse, 'body'>): string {
  return readText(new TextDecoder().decode(body.subarray(0, 10_000)), 'Code') ?? '';
}

/** The error of an answer that is not a success. Its message has no key, no address and no secret. */
export function toS3Failure(action: string, response: HttpResponse): OrchestratorError {
  const code = codeOfAnswer(response);
  const { status } = response;
  const what = `s3Objects: S3 answers \`${action}\` with ${status}${code === '' ? '' : ` ${code}`}`;
  if (PASSING.includes(code) || PASSING_STATUS.includes(status)) {
    return new OrchestratorError('OVERLOADED', what, { retryable: true });
  }
  if (code === 'EntityTooLarge' || code === 'MetadataTooLarge' || code === 'KeyTooLongError') {
    return new OrchestratorError('INVALID_REQUEST', `${what}: the object or its description is too large`);
  }
  const remedy = REMEDIES[code] ?? 'check the endpoint, the region, the bucket and the rights of the keys';
  return new OrchestratorError('NOT_CONFIGURED', `${what}; ${remedy}`);
}

/** Whether the answer was larger than what is read. */
export function isTooLarge(thrown: unknown): boolean {
  return isOrchestratorError(thrown) && thrown.details.reason === 'too-large';
}

/** The error of a request without an answer. */
export function toLost(action: string, thrown: unknown): OrchestratorError {
  const passing = !isOrchestratorError(thrown) || thrown.retryable;
  if (passing) {
    return new OrchestratorError('OVERLOADED', `s3Objects: S3 did not answer \`${action}\``, {
      cause: thrown,
      retryable: true,
    });
  }
  const message = `s3Objects: the request \`${action}\` can't be sent: ${messageOf(thrown)}`;
  return new OrchestratorError('NOT_CONFIGURED', message, { cause: thrown });
}
