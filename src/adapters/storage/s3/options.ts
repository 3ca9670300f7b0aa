/** The options of a store in S3, and their checks. */

import { refuseUnknownKeys } from '../../../engine/base/refuse-unknown-keys.ts';
import { DURATION_RULE, type Duration, isDuration, toMs } from '../../../engine/base/duration.ts';
import { isPlainText } from '../../../engine/ports/data.ts';
import type { HttpClient } from '../../../engine/ports/http.ts';

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

const KNOWN = [
  ...['url', 'region', 'bucket', 'accessKeyId', 'secretAccessKey', 'sessionToken', 'prefix', 'http', 'forcePathStyle'],
  ...['maxObjectBytes', 'timeout'],
];
const MAX_PREFIX_BYTES = 250;
const GIB = 2 ** 30;

/** @throws TypeError for options that can't be right */
export function checkOptions(options: S3ObjectsOptions): S3Place {
  refuseUnknownKeys(options, KNOWN, 's3Objects');
  for (const key of ['region', 'bucket', 'accessKeyId', 'secretAccessKey'] as const) {
    if (typeof options?.[key] !== 'string' || options[key] === '') throw misuse(`\`${key}\` must be text`);
  }
  const { bucket, region, prefix = '', http, maxObjectBytes = GIB, timeout = '60s' } = options;
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) {
    throw misuse('`bucket` must be 3 to 63 lower-case letters, digits, dots and hyphens');
  }
  if (!/^[a-z0-9-]+$/.test(region)) throw misuse('`region` must be lower-case letters, digits and hyphens');
  const hasDots = /(^|\/)\.{1,2}(\/|$)/.test(prefix);
  if (!isPlainText(prefix) || hasDots || new TextEncoder().encode(prefix).length > MAX_PREFIX_BYTES) {
    throw misuse(`\`prefix\` must be text of at most ${MAX_PREFIX_BYTES} bytes, without NUL and the segments . and ..`);
  }
  if (http !== undefined && typeof http?.send !== 'function') throw misuse('`http` must be an HttpClient');
  if (!Number.isSafeInteger(maxObjectBytes) || maxObjectBytes < 1)
    throw misuse('`maxObjectBytes` must be a whole number above 0');
  if (!isDuration(timeout) || toMs(timeout) < 1) throw misuse(`\`timeout\` ${DURATION_RULE}, above 0`);
  return { base: baseOf(options), prefix, maxObjectBytes, timeoutMs: toMs(timeout) };
}

function baseOf({ url: server, region, bucket, forcePathStyle }: S3ObjectsOptions): string {
  const url = parseUrl(server ?? `https://s3.${region}.amazonaws.com`);
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw misuse('`url` must be an http: or https: address without user, query and fragment');
  }
  const path = url.pathname.replace(/\/+$/, '');
  // The certificate of a host has no names with further dots.
  if (forcePathStyle ?? (server !== undefined || bucket.includes('.'))) return `${url.origin}${path}/${bucket}`;
  return `${url.protocol}//${bucket}.${url.host}${path}`;
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function misuse(what: string): TypeError {
  return new TypeError(`s3Objects: ${what}`);
}
