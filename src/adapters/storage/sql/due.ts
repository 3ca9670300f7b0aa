/**
 * When a free execution is due: the table of the storage port as SQL. `src/engine/execution/due.ts` is the same table as
 * functions.
 */

/** Each expression is the new `due_at` of the execution `e`. */
export interface DueSql {
  /** @param x - the row that releases it: its `status`, `due_at` and `seen` */
  released(x: string): string;
  /** @param requestedAt - the instant of the request. An execution that is held has no `due_at` */
  cancelled(requestedAt: string): string;
  /**
   * @param isAwaited - whether `e.waits_for` contains the name of the signal
   * @param createdAt - the instant of the signal
   */
  signalled(isAwaited: string, createdAt: string): string;
}

/** @param cancelledAt - the instant of the request to cancel `e`, or any earlier instant; NULL without a request */
function dueSql(least: 'least' | 'min', cancelledAt: string): DueSql {
  return {
    released: (x) => `${least}(${x}.due_at, coalesce(${cancelledAt}, ${x}.due_at),
      CASE WHEN ${x}.status = 'waiting' AND e.signals > coalesce(${x}.seen, 0)
        THEN coalesce(e.signalled_at, ${x}.due_at) ELSE ${x}.due_at END)`,
    cancelled: (requestedAt) => `CASE WHEN e.owner IS NULL THEN ${least}(e.due_at, ${requestedAt}) END`,
    signalled: (isAwaited, createdAt) => `CASE
      WHEN e.owner IS NULL AND e.status IN ('waiting', 'paused') AND (e.waits_for IS NULL OR ${isAwaited})
        THEN ${least}(e.due_at, ${createdAt}) ELSE e.due_at END`,
  };
}

export const DUE_IN_POSTGRES: DueSql = dueSql('least', 'e.cancel_at');
/** SQLite stores only that the cancellation was requested. */
export const DUE_IN_SQLITE: DueSql = dueSql('min', 'CASE e.cancel_requested WHEN 1 THEN 0 END');
