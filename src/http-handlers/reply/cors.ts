/** Cross-origin calls: off unless the host lists the origins whose pages may call, and never with credentials. */

import type { PlainRequest } from '../../engine/host/host.port.ts';

export type CorsRule = ReadonlySet<string>;

const PREFLIGHT = {
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'access-control-max-age': '600',
} as const;
const SENT = 'Authorization, Content-Type, Idempotency-Key, If-Match, Prefer, X-Request-Id, Last-Event-ID';
const EXPOSED =
  'ETag, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-RateLimit-Retry-After, X-Request-Id';

/** @throws TypeError for an entry that is not an origin: scheme, host and port, as a browser writes them */
export function corsRule(origins: readonly string[] | undefined): CorsRule | undefined {
  if (origins === undefined) return undefined;
  if (!Array.isArray(origins)) throw new TypeError("`cors` must be a list of origins, such as ['https://app.example']");
  for (const origin of origins) {
    if (typeof origin !== 'string' || !isOrigin(origin)) {
      throw new TypeError(
        `\`cors\`: ${JSON.stringify(origin)} is not an origin; write only scheme, host and port, such as 'https://app.example'`,
      );
    }
  }
  return new Set(origins);
}

function isOrigin(text: string): boolean {
  try {
    return /^https?:\/\/[^*]+$/.test(text) && new URL(text).origin === text;
  } catch {
    return false;
  }
}

/** Whether a browser asks before a call of a page that may call. The question does nothing, and is not counted. */
export function isPreflight(rule: CorsRule | undefined, request: PlainRequest): boolean {
  return (
    request.method === 'OPTIONS' &&
    request.header('access-control-request-method') !== undefined &&
    rule?.has(request.header('origin') ?? '') === true
  );
}

/** The CORS headers of a response. They allow nothing to an origin that is not listed. */
export function corsHeaders(
  rule: CorsRule | undefined,
  request: PlainRequest,
  apiKeyHeader: string,
): Readonly<Record<string, string>> | undefined {
  if (!rule) return undefined;
  const origin = request.header('origin');
  if (origin === undefined || !rule.has(origin)) return { vary: 'Origin' };
  return {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-expose-headers': EXPOSED,
    ...(request.method === 'OPTIONS' && {
      ...PREFLIGHT,
      'access-control-allow-headers': `${SENT}, ${apiKeyHeader}`,
    }),
  };
}
