/** Instants and distances in time as text for people. */

/** Local time, such as `2026-11-20 16:30:24`. @param instant - Unix ms */
export function formatInstant(instant: number): string {
  const date = new Date(instant);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const UNITS: readonly (readonly [name: string, seconds: number])[] = [
  ['y', 365 * 86_400],
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
];

/** The distance of an instant from now, such as `3m ago`, `in 2d`, `now`. @param instant - Unix ms @param now - Unix ms */
export function formatDistance(instant: number, now: number): string {
  const seconds = Math.floor(Math.abs(instant - now) / 1000);
  const [name, size] = UNITS.find(([, unit]) => seconds >= unit) ?? ['', 1];
  if (name === '') return 'now';
  // Rounds a future instant up: one day from a moment ago is `in 24h`, not `in 23h`.
  return instant > now ? `in ${Math.ceil(seconds / size)}${name}` : `${Math.floor(seconds / size)}${name} ago`;
}
