/** How executions are found by their status: what is at work in one index, what is not at work and has not completed in another. */

/** The executions that are held, by their index: it answers a fence alone. What has ended has no owner, and is not in it. */
export const HELD = 'ensemble_executions INDEXED BY ensemble_executions_held';

/** What the index of the statuses holds, in its own words: a statement that says so is answered by it. */
export const OPEN_OR_FAILED = "status <> 'completed' AND owner IS NULL";
