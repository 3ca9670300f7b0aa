/** The address of a screen. It stands after the `#`, so that the page works below any path; the browser's Back button leads to the screen before. */

import { useEffect, useState } from 'preact/hooks';

export interface Address {
  /** Such as `['executions', 'exec_1']`. Empty for the first screen. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export type QueryChanges = Readonly<Record<string, string | undefined>>;

export function readAddress(hash: string): Address {
  const [path = '', search = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  const segments = path.split('/').filter((segment) => segment !== '');
  return { path: segments.map(decode), query: Object.fromEntries(new URLSearchParams(search)) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The value of a link. @param query - entries without a value are left out */
export function linkTo(path: readonly string[], query: QueryChanges = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  return `#/${path.map(encodeURIComponent).join('/')}${search}`;
}

export function useAddress(): Address {
  const [address, setAddress] = useState(() => readAddress(location.hash));
  useEffect(() => {
    const onChange = () => setAddress(readAddress(location.hash));
    addEventListener('hashchange', onChange);
    // It may have changed since the page was drawn.
    onChange();
    return () => removeEventListener('hashchange', onChange);
  }, []);
  return address;
}

export function goTo(path: readonly string[], query: QueryChanges = {}): void {
  location.hash = linkTo(path, query);
}

/** Changes the query of the present screen. @param replaces - Back leads to the address before the present one */
export function changeQuery(changes: QueryChanges, replaces = false): void {
  const { path, query } = readAddress(location.hash);
  const link = linkTo(path, { ...query, ...changes });
  if (replaces) location.replace(link);
  else location.hash = link;
}
