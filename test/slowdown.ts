/** Says how much slower than a quiet machine this one is at the moment, for the few tests whose bounds are real time. */

/** What the work below takes on a quiet machine with a processor of 2024, in ms. */
const QUIET_MS = 12;

const VALUE = Array.from({ length: 400 }, (_, i) => ({ id: i, name: `name ${i}`, list: [i, i + 1, i + 2] }));

function measure(): number {
  const began = performance.now();
  for (let i = 0; i < 40; i++) JSON.parse(JSON.stringify(VALUE));
  return performance.now() - began;
}

/** A bound in real time, multiplied by how much slower this machine is right now. Never below `ms`. */
export function scaled(ms: number): number {
  return ms * Math.max(1, ...[measure(), measure(), measure()].map((took) => took / QUIET_MS));
}
