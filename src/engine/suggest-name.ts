/** Finds the name that was probably meant where an unknown one was written. */

// Longer names aren't typed by hand, and the cost of a distance grows with the product of the lengths.
const MAX_LENGTH = 128;
// Pairs of letters that one search may compare: about 500 names of 14 letters, in a millisecond.
const MAX_PAIRS = 100_000;
const MAX_SUGGESTED = 10;
/** How many of many names are told of at once. */
export const MAX_NAMED = 100;

/**
 * The nearest of the known names, or undefined when none is near. A name that differs by case alone is always near;
 * else the number of edits (insert, delete, replace, swap of neighbours) must be small beside the length.
 *
 * @param name - what was written
 * @param known - the names that would be valid; of two equally near ones the first is taken. Of very many, the first ones of
 *   a near length are looked at
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
    // A short name has few letters to share: `id` is not a slip of `if` unless most of the letters stayed.
    if (edits < bestEdits && edits < Math.max(folded.length, other.length) / 2) {
      best = candidate;
      bestEdits = edits;
    }
  }
  return best;
}

/** A {@link suggestName} for the unknown names of one list, which may be a caller's: the first ten of them get a suggestion. */
export function suggestForMany(): typeof suggestName {
  let left = MAX_SUGGESTED;
  return (name, known) => (left-- > 0 ? suggestName(name, known) : undefined);
}

function allowedEdits(length: number): number {
  if (length <= 4) return 1;
  return length <= 9 ? 2 : 3;
}

// Damerau-Levenshtein (optimal string alignment) in three rows; gives `limit` as soon as it can't be less.
function countEdits(a: string, b: string, limit: number): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let edits = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, at(beforeLast, j - 2) + 1);
      }
      row.push(edits);
      if (edits < least) least = edits;
    }
    if (least >= limit) return limit;
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] as number;
}
