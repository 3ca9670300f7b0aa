/** The canonical spelling of a webhook's path, so that two spellings of one path can't name two webhooks. */

// The characters that a segment may contain without an escape.
const AS_IT_IS = /^[A-Za-z0-9._~!$&'()*+,;=:@-]$/;

/**
 * The form in which paths of triggers and requests are compared: no `/` at the end, `%61` as `a`, other escapes in upper case,
 * and escapes for characters outside ASCII.
 *
 * @param path - begins with `/`, without query and fragment
 * @returns undefined if the path contains a broken escape, an escaped `/` or NUL, an empty, `.` or `..` segment, or `\`
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
