/** A text with the numbers of its lines, and the lines that differ between two texts. */

import { diffLines } from 'diff';
import { useMemo } from 'preact/hooks';
import { visible } from '../format.ts';

export function CodeLines({ text, label }: { readonly text: string; readonly label: string }) {
  const lines = useMemo(() => visible(text).split('\n'), [text]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached by keyboard
    <section class="code mono" aria-label={label} tabIndex={0}>
      {lines.map((line, i) => (
        <div key={`${i} ${line}`}>{line}</div>
      ))}
    </section>
  );
}

export interface DiffLine {
  readonly text: string;
  readonly change: 'same' | 'added' | 'removed';
}

/** The differences that are searched for. Texts with more are shown one after the other, so that the page stays quick. */
const MAX_DIFFERENCES = 3_000;

export function compareLines(before: string, after: string): readonly DiffLine[] {
  // The last line ends like all others.
  const [old, now] = [`${before}\n`, `${after}\n`];
  const parts = diffLines(old, now, { maxEditLength: MAX_DIFFERENCES }) ?? [
    { value: old, removed: true, added: false },
    { value: now, removed: false, added: true },
  ];
  return parts.flatMap(({ value, added, removed }) => {
    const change = added ? 'added' : removed ? 'removed' : 'same';
    return value
      .slice(0, -1)
      .split('\n')
      .map((text): DiffLine => ({ text, change }));
  });
}

const SIGNS = { same: ' ', added: '+', removed: '-' } as const;

export function CodeDiff({
  before,
  after,
  label,
}: {
  readonly before: string;
  readonly after: string;
  readonly label: string;
}) {
  const lines = useMemo(() => compareLines(visible(before), visible(after)), [before, after]);
  if (lines.every(({ change }) => change === 'same')) return <p class="empty">They are equal.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached by keyboard
    <section class="code mono" aria-label={label} tabIndex={0}>
      {lines.map(({ text, change }, i) => (
        <div key={`${i} ${text}`} class={change}>
          {SIGNS[change]} {text}
        </div>
      ))}
    </section>
  );
}
