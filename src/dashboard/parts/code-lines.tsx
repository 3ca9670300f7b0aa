/** A text with the numbers of its lines, and the lines that differ between two texts. */

import { useMemo } from 'preact/hooks';
import { visible } from '../format.ts';
import { diffLines } from './line-diff.ts';

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
  const lines = useMemo(() => diffLines(visible(before), visible(after)), [before, after]);
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
