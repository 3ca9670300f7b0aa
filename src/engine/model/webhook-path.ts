/** The one spelling of a webhook's path, so that two spellings of one path can't stand for two webhooks. */

// What a segment may hold without an escape.
const AS_IT_IS = /^[A-Za-z0-9._~!$&'()*+,;=:@-]$/;

/**
 * The path as triggers and requests are compared: without a `/` at its end, `%61` as `a`, other escapes in upper case,
 * characters beyond ASCII escaped.
 *
 * @param path - begins with `/`, without query and fragment
 * @returns undefined for what no path may hold: broken escapes, an escaped `/` or NUL, empty, `.` or `..` segments, `\`
 */
export function canonicalWebhookPath(path: string): string | undefined {
  if (!path.startsWith('/') || path.includes('\\')) return undefined;
  const segments: string[] = [];
  const given = path.slice(1).split('/');
  if (given.at(-1) === '') given.pop();
  for (const segment of given) {
    const canonical = canonicalSegment(segment);
    if (canonical === undefined || canonical === '' || canonical === '.' || canonical === '..') return undefined;
    segments.push(canonical);
  }
  return `/${segments.join('/')}`;
}

function canonicalSegment(segment: string): string | undefined {
  try {
    const text = decodeURIComponent(segment);
    if (text.includes('/') || text.includes('\0') || text.includes('\\')) return undefined;
    return [...text].map((char) => (AS_IT_IS.test(char) ? char : encodeURIComponent(char))).join('');
  } catch {
    return undefined;
  }
}
