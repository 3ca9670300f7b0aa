/** The tables of the SQLite storage by the index that answers a statement. */

/**
 * The executions that a worker holds. The index contains the fence, so a check of the fence reads no row. Ended
 * executions are not in it.
 */
export const HELD = 'ensemble_executions INDEXED BY ensemble_executions_held';

/** The executions that take a slot of their caller: those that a worker holds. */
export const SLOTS =
  'ensemble_executions INDEXED BY ensemble_executions_slots WHERE account IS NOT NULL AND owner IS NOT NULL';

/**
 * The condition of the index by status, word for word: SQLite uses a partial index only for a statement that contains
 * its condition.
 */
export const OPEN_OR_FAILED = "status <> 'completed' AND owner IS NULL";

/** The agent runs of the execution that follows. Row order is the order in which they were first stored. */
export const RUNS = 'FROM ensemble_steps INDEXED BY ensemble_steps_runs WHERE note IS NULL AND execution =';
/** The decisions of the execution that follows, in the same order. */
export const DECISIONS = 'FROM ensemble_steps INDEXED BY ensemble_steps_notes WHERE note = 1 AND execution =';
