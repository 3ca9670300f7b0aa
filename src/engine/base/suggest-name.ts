/** Finds the known name that is most similar to an unknown name, for messages such as "did you mean ...?". */

// Nobody types longer names by hand, and the cost of a comparison grows with the product of both lengths.
const MAX_LENGTH = 128;
// The pairs of letters that one search may compare: about 500 names of 14 letters, which takes a millisecond.
const MAX_PAIRS = 100_000;
const MAX_SUGGESTED = 10;
/** At most this many names are listed in one answer. */
export const MAX_NAMED = 100;

/**
 * The most similar known name, or undefined when none is similar. A name that differs only in case is always similar.
 * Otherwise the number of edits (insert, delete, replace, swap of neighbours) must be small compared with the length.
 *
 * @param name - the unknown name
 * @param known - the valid names. The first of two equally similar names wins. In a very long list, only the first names of a
 *   similar length are compared
 */
export function suggestName(name: string, known: Iterable<string>): string | undefined {
  if (name === '' || name.length > MAX_LENGTH) return undefined;
  const folded = name.toLowerCase();
  let pairsLeft = MAX_PAIRS;
  let best: string | undefined;
  let bestEdits = allowedEdits(name.length) + 1;
  for (const candidate of known) {
    if (candidate === name || candidate === '' || Math.abs(candidate.length - name.length) >= bestEdits) continue;
    const other = candidate.toLowerCase();
    pairsLeft -= folded.length * other.length;
    if (pairsLeft < 0) break;
    const edits = countEdits(folded, other, bestEdits);
    // Less than half of the letters may differ, because short names match easily: `id` is not a typing error for `if`.
    if (edits < bestEdits && edits < Math.max(folded.length, other.length) / 2) {
      best = candidate;
      bestEdits = edits;
    }
  }
  return best;
}

/** A {@link suggestName} for many unknown names from a caller: only the first ten names get a suggestion. */
export function suggestForMany(): typeof suggestName {
  let left = MAX_SUGGESTED;
  return (name, known) => (left-- > 0 ? suggestName(name, known) : undefined);
}

function allowedEdits(length: number): number {
  if (length <= 4) return 1;
  return length <= 9 ? 2 : 3;
}

// Damerau-Levenshtein distance (optimal string alignment) in three rows. It returns `limit` as soon as it can't be less.
function countEdits(a: string, b: string, limit: number): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let smallest = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let edits = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, at(beforeLast, j - 2) + 1);
      }
      row.push(edits);
      if (edits < smallest) smallest = edits;
    }
    if (smallest >= limit) return limit;
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] as number;
}
