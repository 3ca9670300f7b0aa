/** The schedules of a project, as lines that say when each is due next. */

import { createTicks } from '../engine/cron.ts';
import type { EnsembleDefinition } from '../engine/model/ensemble.ts';
import { formatDistance } from './times.ts';

/**
 * A line for each schedule: ensemble, pattern, time zone, and the next instant in UTC.
 *
 * @param now - Unix ms
 */
export function scheduleLines(definitions: readonly EnsembleDefinition[], now: number): string[] {
  const rows = definitions.flatMap(({ name, trigger = [] }) =>
    trigger.flatMap((entry) => {
      if (entry.type !== 'schedule') return [];
      const { timezone = 'UTC' } = entry;
      const cron = entry.cron.trim().replace(/\s+/g, ' ');
      return [[name, cron, timezone, describeNext(createTicks(cron, timezone).next(now), now)]];
    }),
  );
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
}

function describeNext(next: number | undefined, now: number): string {
  if (next === undefined) return 'never due again';
  return `next at ${new Date(next).toISOString().replace('.000Z', 'Z')}, ${formatDistance(next, now)}`;
}
