/** An instant: how long ago it was, with the exact time on demand. */

import { formatDistance, formatInstant } from '../format.ts';

export function Instant({ at, exact = false }: { readonly at: number | undefined; readonly exact?: boolean }) {
  if (at === undefined) return <span class="hint">-</span>;
  const iso = new Date(at).toISOString();
  return (
    <time dateTime={iso} title={iso}>
      {exact ? formatInstant(at) : formatDistance(at)}
    </time>
  );
}
