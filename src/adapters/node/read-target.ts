/** Reads a request's target as a URL parser would, without its cost where the text is plain (A98, A122). */

export interface Target {
  /** From `/` on, dot segments resolved. */
  readonly path: string;
  /** What stands behind `?`. */
  readonly query: string;
}

// No dots, escapes or backslashes: a URL parser leaves such a path as it is.
const PLAIN = /^(\/[A-Za-z0-9_~:@!$&'()*+,;=/-]*)(?:\?([A-Za-z0-9_~:@!$&()*+,;=/?.%-]*))?$/;

/** @param target - origin form (`/path?query`), absolute form (`http://host/path`) or `*` */
export function readTarget(target: string): Target {
  const plain = PLAIN.exec(target);
  if (plain) return { path: plain[1] as string, query: plain[2] ?? '' };
  try {
    const { pathname, search } = new URL(target.startsWith('/') ? `http://host${target}` : target);
    return { path: pathname, query: search.slice(1) };
  } catch {
    return { path: target, query: '' };
  }
}
