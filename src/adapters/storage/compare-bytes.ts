/** The order of keys: by the bytes of their UTF-8 form. */

/** @returns a negative number if `a` comes before `b`, zero if they are equal */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Compares two texts by their UTF-8 bytes. */
export function compareKeys(a: string, b: string): number {
  const encoder = new TextEncoder();
  return compareBytes(encoder.encode(a), encoder.encode(b));
}
