/** What the SQL stores share for the deletion of old executions: where a batch begins, and where the walk ends. */

/**
 * The largest expected difference between clocks. An execution that was accepted this long after an instant has not
 * ended before that instant.
 */
export const MAX_CLOCK_DIFFERENCE_MS = 3_600_000;

/**
 * Where a batch of `purge` begins.
 * @param after - `created_at` and `id` of the last execution of the batch before, as columns with a space between them
 */
export function readPosition(after: string | undefined): readonly [createdAt: number, id: string] {
  if (after === undefined) return [Number.MIN_SAFE_INTEGER, ''];
  const end = after.indexOf(' ');
  return [Number(after.slice(0, end)), after.slice(end + 1)];
}
