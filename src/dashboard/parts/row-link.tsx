/** The link of a row in a list: `j` and `k` go through them, and after Esc it has the focus again. */

import type { ComponentChildren } from 'preact';
import { linkTo } from '../address.ts';
import { useApp } from '../app-state.ts';

interface RowLinkProps {
  /** Of the item's own screen. */
  readonly path: readonly string[];
  readonly title?: string;
  /** Whether its text is an id. */
  readonly isCode?: boolean;
  readonly children: ComponentChildren;
}

export function RowLink({ path, title, isCode = false, children }: RowLinkProps) {
  const { left } = useApp();
  const href = linkTo(path);
  const focus = (element: HTMLAnchorElement | null) => {
    if (!element || left.current !== href) return;
    left.current = undefined;
    element.focus();
    element.scrollIntoView({ block: 'nearest' });
  };
  return (
    <a data-row href={href} ref={focus} title={title} class={isCode ? 'mono' : ''}>
      {children}
    </a>
  );
}
