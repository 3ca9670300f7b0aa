/** The lines that differ between two texts. Pure. */

export interface DiffLine {
  readonly text: string;
  readonly change: 'same' | 'added' | 'removed';
}

/** Longer texts are compared without looking for moved lines, so that the page stays quick. */
const MAX_LINES = 2_000;

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const same = (text: string): DiffLine => ({ text, change: 'same' });
  const middle = between(old.slice(start, old.length - end), now.slice(start, now.length - end));
  return [...old.slice(0, start).map(same), ...middle, ...old.slice(old.length - end).map(same)];
}

/** By the longest common subsequence. */
function between(old: readonly string[], now: readonly string[]): readonly DiffLine[] {
  const removed = (text: string): DiffLine => ({ text, change: 'removed' });
  const added = (text: string): DiffLine => ({ text, change: 'added' });
  if (Math.max(old.length, now.length) > MAX_LINES) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] as number;
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      lengths[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    const [own, other] = [old[i], now[j]];
    if (own !== undefined && own === other) {
      lines.push({ text: own, change: 'same' });
      i++;
      j++;
    } else if (other === undefined || (own !== undefined && at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(own as string));
      i++;
    } else {
      lines.push(added(other));
      j++;
    }
  }
  return lines;
}
