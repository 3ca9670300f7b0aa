/** Functions over instants. They accept Unix ms or ISO text, and always use UTC. */

import type { Json } from '../../base/json/json.ts';
import { EvaluationProblem } from '../evaluation-problem.ts';
import { integerAt, isAbsent, numberAt, textAt, wrongArgument } from './arguments.ts';
import { type FunctionTable, takesValue } from './function-table.ts';
import { formatInstant, parseInstant, toIsoText } from './instant.ts';

export const timeFunctions = {
  date: takesValue(1, 2, (args) => {
    const instant = instantAt(args, 0);
    return isAbsent(args, 1) ? toIsoText(instant) : formatInstant(instant, textAt(args, 1));
  }),
  addTime: takesValue(3, 3, addTime),
} satisfies FunctionTable;

const UNIT_MS: Readonly<Record<string, number>> = {
  millisecond: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
};
// Longer than any unit.
const MAX_UNIT_LENGTH = 16;
const SHORT_UNITS: Readonly<Record<string, string>> = {
  ...{ ms: 'millisecond', s: 'second', m: 'minute', h: 'hour', d: 'day', w: 'week' },
};

function instantAt(args: readonly Json[], position: number): number {
  const value = args[position] as Json;
  if (typeof value !== 'number' && typeof value !== 'string')
    throw wrongArgument(args, position, 'Unix ms or ISO text');
  return parseInstant(value);
}

function addTime(args: readonly Json[]): Json {
  if (args[1] === null) return null;
  const instant = instantAt(args, 0);
  const givenUnit = textAt(args, 2).slice(0, MAX_UNIT_LENGTH);
  const unit = Object.hasOwn(SHORT_UNITS, givenUnit) ? (SHORT_UNITS[givenUnit] as string) : givenUnit.replace(/s$/, '');
  if (Object.hasOwn(UNIT_MS, unit)) {
    return toIsoText(instant + Math.round(numberAt(args, 1) * (UNIT_MS[unit] as number)));
  }
  if (unit !== 'month' && unit !== 'year') {
    throw new EvaluationProblem(
      'argument 3 must be one of milliseconds, seconds, minutes, hours, days, weeks, months, years',
    );
  }
  const amount = integerAt(args, 1, -120_000, 120_000);
  return toIsoText(addMonths(instant, unit === 'year' ? amount * 12 : amount));
}

// The same day of another month, or the last day of that month when it is too short.
function addMonths(instant: number, months: number): number {
  const from = new Date(instant);
  const to = new Date(instant);
  to.setUTCDate(1);
  to.setUTCMonth(to.getUTCMonth() + months);
  const lastDay = new Date(to);
  lastDay.setUTCMonth(to.getUTCMonth() + 1, 0);
  to.setUTCDate(Math.min(from.getUTCDate(), lastDay.getUTCDate()));
  return to.getTime();
}
