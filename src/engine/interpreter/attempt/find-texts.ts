/** Finds any of many texts in one pass over a text, with the algorithm of Wu and Manber over pairs of characters. */

export interface TextFinder {
  isIn(text: string): boolean;
  /** Replaces each text that is found. Of several texts at one place the longest is replaced, so that nothing of it remains. */
  replace(text: string, by: string): string;
  /** Where the end of a text begins that may be part of a text to find, when more follows; its length if there is none. */
  openFrom(text: string): number;
}

const BUCKETS = 1 << 14;

/** @param texts - at least one, each with at least 2 characters */
export function findTexts(texts: Iterable<string>): TextFinder {
  const ordered = [...texts].sort((a, b) => b.length - a.length);
  const window = ordered.at(-1)?.length ?? 0;
  // By pair of characters: how far the window may move when it ends in that pair; 0 where a text may begin.
  const shifts = new Uint8Array(BUCKETS).fill(Math.min(window - 1, 255));
  const candidates = new Map<number, string[]>();
  for (const text of ordered) {
    for (let at = 1; at < window; at++) {
      const bucket = bucketOf(text, at);
      shifts[bucket] = Math.min(shifts[bucket] as number, window - 1 - at);
    }
    const last = bucketOf(text, window - 1);
    const known = candidates.get(last);
    if (known) known.push(text);
    else candidates.set(last, [text]);
  }

  const find = (text: string, from: number): { readonly start: number; readonly end: number } | undefined => {
    let at = from + window - 1;
    while (at < text.length) {
      const bucket = bucketOf(text, at);
      const shift = shifts[bucket] as number;
      if (shift === 0) {
        const start = at - window + 1;
        for (const candidate of candidates.get(bucket) ?? [])
          if (text.startsWith(candidate, start)) return { start, end: start + candidate.length };
        at += 1;
      } else {
        at += shift;
      }
    }
    return undefined;
  };

  const longest = ordered[0]?.length ?? 0;
  return {
    openFrom(text) {
      let open = Math.max(0, text.length - longest);
      while (open < text.length && !ordered.some((one) => one.startsWith(text.slice(open)))) open += 1;
      for (let found = find(text, 0); found && found.start < open; found = find(text, found.end))
        if (found.end > open) return found.start;
      return open;
    },
    isIn: (text) => find(text, 0) !== undefined,
    replace(text, by) {
      let replaced = '';
      let from = 0;
      for (let found = find(text, 0); found; found = find(text, from)) {
        replaced += text.slice(from, found.start) + by;
        from = found.end;
      }
      return from === 0 ? text : replaced + text.slice(from);
    },
  };
}

function bucketOf(text: string, at: number): number {
  return ((text.charCodeAt(at - 1) << 7) ^ text.charCodeAt(at)) & (BUCKETS - 1);
}
