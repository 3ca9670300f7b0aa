/** The options of a store in S3, and their checks. */

import {
  duration,
  flag,
  httpAddress,
  isText,
  like,
  type OptionChecks,
  optional,
  readOptions,
  requiredOption,
  someText,
  wholeNumber,
  withMethods,
} from '../../../engine/base/read-options.ts';
import { type Duration, toMs } from '../../../engine/base/time/duration.ts';
import type { HttpClient } from '../../../engine/host/http.port.ts';
import { isPlainText } from '../../../engine/storage/data.port.ts';

/** A bucket of S3, or of a server that speaks its protocol. */
export interface S3ObjectsOptions {
  /** The address of the server, such as `https://s3.example.com`. Default: that of Amazon for `region`. */
  readonly url?: string | undefined;
  /** Such as `eu-central-1`; `auto` for R2. */
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary keys. */
  readonly sessionToken?: string | undefined;
  /** The beginning of the names of all objects, such as `reports/`. Default: none. */
  readonly prefix?: string | undefined;
  /** Sends the requests. Default: the `fetch` of the platform. `fetchHttp` refuses private addresses that `allow` does not name. */
  readonly http?: HttpClient | undefined;
  /** Whether the bucket is in the path of addresses, and not in the name of the host. Default: true with a `url`. */
  readonly forcePathStyle?: boolean | undefined;
  /** The largest object that `get` loads, in bytes. Default 1 GiB. */
  readonly maxObjectBytes?: number | undefined;
  /** The time limit of one request. Default `60s`. */
  readonly timeout?: Duration | undefined;
}

/** A place of objects. */
export interface S3Place {
  /** The address of the bucket, without `/` at its end. */
  readonly base: string;
  readonly prefix: string;
  readonly maxObjectBytes: number;
  readonly timeoutMs: number;
}

const MAX_PREFIX_BYTES = 250;
const GIB = 2 ** 30;

const TEXT = requiredOption('text', isText);
const CHECKS: OptionChecks<S3ObjectsOptions> = {
  url: httpAddress,
  region: requiredOption('lower-case letters, digits and hyphens', like(/^[a-z0-9-]+$/)),
  bucket: requiredOption(
    '3 to 63 lower-case letters, digits, dots and hyphens',
    like(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/),
  ),
  accessKeyId: TEXT,
  secretAccessKey: TEXT,
  sessionToken: someText,
  prefix: optional(
    `text of at most ${MAX_PREFIX_BYTES} bytes, without NUL and the segments . and ..`,
    (prefix: string) =>
      isPlainText(prefix) &&
      !/(^|\/)\.{1,2}(\/|$)/.test(prefix) &&
      new TextEncoder().encode(prefix).length <= MAX_PREFIX_BYTES,
  ),
  http: withMethods('an HttpClient', 'send'),
  forcePathStyle: flag,
  maxObjectBytes: wholeNumber(1),
  timeout: duration(1),
};

/** @throws TypeError for options that can't be right */
export function placeOf(options: S3ObjectsOptions): S3Place {
  const { prefix = '', maxObjectBytes = GIB, timeout = '60s' } = readOptions('s3Objects', options, CHECKS);
  return { base: baseOf(options), prefix, maxObjectBytes, timeoutMs: toMs(timeout) };
}

function baseOf({ url: server, region, bucket, forcePathStyle }: S3ObjectsOptions): string {
  const url = new URL(server ?? `https://s3.${region}.amazonaws.com`);
  const path = url.pathname.replace(/\/+$/, '');
  // The certificate of a host has no names with further dots.
  if (forcePathStyle ?? (server !== undefined || bucket.includes('.'))) return `${url.origin}${path}/${bucket}`;
  return `${url.protocol}//${bucket}.${url.host}${path}`;
}
