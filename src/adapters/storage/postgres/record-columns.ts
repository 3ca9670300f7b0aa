/** The columns that executions, steps and deliveries are read from. */

/** Of an execution as it was accepted. */
export const ACCEPTED = [
  ...['id', 'ensemble', 'version', 'started_by', 'input', 'seed'],
  ...['created_at', 'deadline_at', 'retry_of'],
];
/** Of a whole one; its agents are counted where it has not ended. */
export const RECORD = [
  ...ACCEPTED,
  ...['status', 'started_at', 'finished_at', 'duration', 'agents', 'error', 'output'],
];
/** Of where one stands. */
export const SUMMARY = ['id', 'ensemble', 'version', 'status', 'started_by', 'created_at', 'finished_at'];
export const STEP = [
  ...['key', 'name', 'status', 'attempts', 'started_at', 'duration'],
  ...['retry_at', 'note', 'error', 'output'],
];
export const DELIVERY = ['id', 'event', 'target', 'payload', 'created_at', 'due_at', 'status', 'attempts'];
