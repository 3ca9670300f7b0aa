/** What a caller pays for an execution: one of its quota of the month, and a slot for as long as a worker holds the execution. */

/** One execution that a caller pays for. It is stored together with the execution. */
export interface Charge {
  /** Names the caller, such as the id of a token. */
  readonly account: string;
  /** The month in UTC, such as `2026-01`. */
  readonly period: string;
  /** The number of charges that a period may have. Absent: any number. */
  readonly limit?: number | undefined;
  /**
   * How many executions of the account may be held at once, 1 or more. Absent: any number, and this execution takes no slot. A slot
   * is not stored anywhere but in the fact that a worker holds the execution, so no slot is ever lost.
   */
  readonly slots?: number | undefined;
}

/** The calendar month of an instant, in UTC. */
export interface Month {
  /** Such as `2026-01`. */
  readonly name: string;
  /** Unix ms of its first instant. */
  readonly start: number;
  /** Unix ms of the first instant after it. */
  readonly end: number;
}

/** @param now - Unix ms */
export function monthOf(now: number): Month {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return {
    name: date.toISOString().slice(0, 7),
    start: Date.UTC(year, month, 1),
    end: Date.UTC(year, month + 1, 1),
  };
}
