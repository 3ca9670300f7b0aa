/** Reads the target of a request without changing it: the routed path is exactly the path that the host saw. */

export interface Target {
  /** From `/` on. */
  readonly path: string;
  /** The text after `?`. */
  readonly query: string;
}

// No dots, escapes or backslashes: a URL parser does not change such a path.
const PLAIN = /^(\/[A-Za-z0-9_~:@!$&'()*+,;=/-]*)(?:\?([A-Za-z0-9_~:@!$&()*+,;=/?.%-]*))?$/;
const SCHEME = /^https?:\/\//i;
const HOST = /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\d:.a-f]+\])(?::\d{1,5})?$/i;
// A URL parser drops these characters, or stops at them.
const DROPPED = /[\t\n\r#]/;

/**
 * @param target - origin form (`/path?query`) or absolute form (`http://host/path`)
 * @returns undefined for any other target, and for a target that a URL parser would change, for example because of dot segments.
 *   A proxy or middleware in front of the handler that compares text would have seen another path
 */
export function readTarget(target: string): Target | undefined {
  const plain = PLAIN.exec(target);
  if (plain) return { path: plain[1] as string, query: plain[2] ?? '' };
  const scheme = SCHEME.exec(target)?.[0].length ?? 0;
  const start = scheme && target.indexOf('/', scheme);
  if (start < 0 || target[start] !== '/' || DROPPED.test(target)) return undefined;
  if (scheme > 0 && !isHost(target.slice(scheme, start))) return undefined;
  const mark = target.indexOf('?', start);
  const path = target.slice(start, mark < 0 ? undefined : mark);
  if (new URL(`http://host${path}`).pathname !== path) return undefined;
  return { path, query: mark < 0 ? '' : target.slice(mark + 1) };
}

/** Whether a text is only a host name or an address, with or without a port. */
export function isHost(text: string): boolean {
  return HOST.test(text) && URL.canParse(`http://${text}`);
}
