/** Prints the tables of durable throughput. */

import { cell, median, medianAndRange, significant, whole } from '../statistics.mjs';

const COLUMNS = ['executions/s (min..max)', 'p50, ms', 'p99, ms', 'commits', 'CPU, ms', 'peak RSS, MB', 'of bare'];

/**
 * @param head - title of the first column
 * @param rows - each with `name`, `title`, and `runs` or the `problem` that prevented them
 */
export function printThroughput(head, rows) {
  const bare = fastestBare(rows);
  console.log(`| ${[head, ...COLUMNS].join(' | ')} |\n|---|${'---:|'.repeat(COLUMNS.length)}`);
  for (const { title, runs, problem } of rows) {
    const cells = problem ? [cell(problem), ...COLUMNS.slice(1).fill('')] : cellsOf(runs, bare);
    const note = problem ? undefined : runs[0].note;
    console.log(`| ${[note ? `${title} (${note})` : title, ...cells].join(' | ')} |`);
  }
  console.log('');
}

function cellsOf(runs, bare) {
  const perSecond = runs.map((run) => run.perSecond);
  return [
    medianAndRange(perSecond, significant),
    ...['p50Ms', 'p99Ms', 'commits', 'cpuMs'].map((key) => significant(medianOf(runs, key))),
    whole(medianOf(runs, 'peakRssMb')),
    bare === undefined ? '' : significant(median(perSecond) / bare),
  ];
}

/** The best that the store can do: the faster of its bare rows. */
function fastestBare(rows) {
  const bare = rows.filter(({ name, problem }) => /-(raw|group)$/.test(name) && !problem);
  return bare.length === 0 ? undefined : Math.max(...bare.map(({ runs }) => medianOf(runs, 'perSecond')));
}

function medianOf(runs, key) {
  return median(runs.map((run) => run[key]));
}
