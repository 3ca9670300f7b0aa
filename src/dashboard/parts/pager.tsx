/** The links between the pages of a list. The cursor of a page is in its address, so Back leads to the page before. */

import { linkTo, type QueryChanges } from '../address.ts';

interface PagerProps {
  readonly path: readonly string[];
  readonly query: QueryChanges;
  readonly next: string | undefined;
}

export function Pager({ path, query, next }: PagerProps) {
  if (next === undefined && query.cursor === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {query.cursor !== undefined && <a href={linkTo(path, { ...query, cursor: undefined })}>First page</a>}
      {next !== undefined && (
        <a href={linkTo(path, { ...query, cursor: next })} rel="next">
          Next page
        </a>
      )}
    </nav>
  );
}
