/** Reads a request's target as it is: what is routed is exactly what the host saw. */

export interface Target {
  /** From `/` on. */
  readonly path: string;
  /** What stands behind `?`. */
  readonly query: string;
}

// No dots, escapes or backslashes: a URL parser leaves such a path as it is.
const PLAIN = /^(\/[A-Za-z0-9_~:@!$&'()*+,;=/-]*)(?:\?([A-Za-z0-9_~:@!$&()*+,;=/?.%-]*))?$/;
const SCHEME = /^https?:\/\//i;
const HOST = /^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\d:.a-f]+\])(?::\d{1,5})?$/i;
// A URL parser drops them, or ends there.
const DROPPED = /[\t\n\r#]/;

/**
 * @param target - origin form (`/path?query`) or absolute form (`http://host/path`)
 * @returns undefined for what is neither, and for what a URL parser would change, such as dot segments: guards in front of the
 *   handler, which compare the text, have seen another path then
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

/** Whether it is a name or an address, with a port or without, and nothing beside it. */
export function isHost(text: string): boolean {
  return HOST.test(text) && URL.canParse(`http://${text}`);
}
