/** Reads rows of limits. */

import type { FlowLimit } from '../../../../engine/execution/limits/flow-limit.ts';
import { type Rate, type RateUse, UNUSED } from '../../../../engine/execution/limits/rate-window.ts';

/** What is stored of a limit. */
export interface LimitState {
  readonly max: number;
  /** Undefined for a limit of executions that are held. */
  readonly rate: Rate | undefined;
  /** What was used of a rate. */
  readonly use: RateUse;
  /** How many slots are taken. */
  readonly taken: number;
}

type Column = string | number | bigint | boolean | Uint8Array | null | undefined;
/** A row of the table of limits. */
export type LimitRow = Readonly<Record<string, Column>>;

/** The id of the row with the number for all keys of a limit. */
export function namedId(name: string): string {
  return JSON.stringify([name]);
}

/** The rows that say what the numbers of limits are: their own, and those of their names. */
export function rowsOfLimits(ids: readonly string[]): readonly string[] {
  return [...new Set(ids.map((id) => namedId((JSON.parse(id) as [string])[0])))];
}

/** @param rows - of limits, and of their names @param taken - how many slots of each limit are taken */
export function readLimitStates(
  ids: readonly string[],
  rows: readonly LimitRow[],
  taken: ReadonlyMap<unknown, number>,
): Map<string, LimitState> {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return new Map(
    ids.flatMap((id): [string, LimitState][] => {
      const own = byId.get(id);
      if (!own) return [];
      const named = byId.get(namedId((JSON.parse(id) as [string])[0]));
      const { max, period, burst } = named && Number(named.since) > Number(own.since) ? named : own;
      const rate = isAbsent(period) ? undefined : { period: Number(period), max: Number(max) };
      const state = {
        max: Number(max),
        rate: rate && (isAbsent(burst) ? rate : { ...rate, burst: Number(burst) }),
        use: typeof own.used === 'string' ? (JSON.parse(own.used) as RateUse) : UNUSED,
        taken: taken.get(id) ?? 0,
      };
      return [[id, state]];
    }),
  );
}

function isAbsent(column: Column): column is null | undefined {
  return column === null || column === undefined;
}

/** The numbers of a limit, in the order of the columns. */
export function limitColumns({ name, max, since, period, burst }: FlowLimit): readonly (string | number | null)[] {
  return [name, max, since, period ?? null, burst ?? null];
}
