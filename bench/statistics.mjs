/** Medians, ranges and the spelling of numbers in the tables. */

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param sorted - ascending; NaN when it is empty */
export function percentile(sorted, share) {
  return sorted.length === 0 ? Number.NaN : sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export function range(values, format) {
  return `(${format(Math.min(...values))}..${format(Math.max(...values))})`;
}

/** `1,234 (1,100..1,300)` */
export function medianAndRange(values, format) {
  return `${format(median(values))} ${range(values, format)}`;
}

export function whole(value) {
  return Math.round(value).toLocaleString('en');
}

export function significant(value) {
  return Math.abs(value) >= 100 ? whole(value) : String(Number(value.toPrecision(3)));
}

/** A text in a cell of a Markdown table. */
export function cell(text) {
  return text.replaceAll('|', '\\|').replaceAll(/\s*\n\s*/g, ' ');
}
