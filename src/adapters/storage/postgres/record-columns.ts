/** The columns that executions and steps are read from. */

/** An execution as it was accepted. */
export const ACCEPTED = [
  ...['id', 'ensemble', 'version', 'started_by', 'input', 'seed'],
  ...['created_at', 'deadline_at', 'retry_of', 'idempotency_key', 'tags'],
];
/** A whole execution. Agent runs are counted until it ends; then their number is stored. */
export const RECORD = [
  ...ACCEPTED,
  ...['status', 'started_at', 'finished_at', 'duration', 'agents', 'error', 'output'],
  ...['recoveries', 'handover', 'resumed_at'],
];
/** An execution's status, without values. */
export const SUMMARY = ['id', 'ensemble', 'version', 'status', 'started_by', 'created_at', 'finished_at'];
/** A whole step. */
export const STEP = [
  ...['key', 'name', 'status', 'attempts', 'started_at', 'duration'],
  ...['retry_at', 'note', 'error', 'output'],
];

/** The number of agent runs: counted until the execution ends, then stored. */
export function agentsOf(steps: string): string {
  const counted = `SELECT count(*) FROM ${steps} s WHERE s.execution = e.ref AND s.retry_at IS NULL AND NOT s.note`;
  return `coalesce(e.agents, (${counted})) AS agents`;
}
