/** Text that UTF-8 can represent. */

/** Replaces halves of surrogate pairs, which UTF-8 can't represent. */
export function wellFormed(text: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}
