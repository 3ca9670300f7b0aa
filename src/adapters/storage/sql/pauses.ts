/**
 * Paused executions, in SQL. One that nobody holds is in a queue of its own, from which nothing is claimed, and `paused_from` says from
 * where: its status and its queue.
 */

/** The queue of paused executions. No limit has this name, so it never has a free slot. */
const QUEUE = `'["paused/",""]'`;

/** `bit` is that of a scope in PAUSE_SCOPES, in SQL. */
export interface PauseSql {
  /** Changes of the execution `e` when it is paused. */
  pause(bit: string): string;
  /** Changes of the execution `e` when a pause ends. */
  resume(bit: string): string;
  isPausedBy(bit: string): string;
  /** Changes of the execution `e` when its worker releases it. @param isReleased - in SQL @param x - the row with the new `status` */
  released(isReleased: string, x: string): string;
  /** Changes of a free execution `e` that leaves its queue, and is not paused any more. */
  left: string;
  /** The status that the execution `e` has, or had before it was paused. */
  status: string;
}

/** @param position - where a text is in another one */
function pauseSql(position: (text: string, part: string) => string): PauseSql {
  const space = position('e.paused_from', "' '");
  const status = `CASE WHEN e.paused_from IS NULL THEN e.status ELSE substr(e.paused_from, 1, ${space} - 1) END`;
  const queue = `CASE WHEN e.paused_from IS NULL THEN e.queue ELSE nullif(substr(e.paused_from, ${space} + 1), '') END`;
  const from = (of: string) => `${of} || ' ' || coalesce(e.queue, '')`;
  return {
    isPausedBy: (bit) => `coalesce(e.paused, 0) & ${bit} > 0`,
    pause: (bit) => `paused = coalesce(e.paused, 0) | ${bit},
      status = CASE WHEN e.owner IS NULL THEN 'paused' ELSE e.status END,
      paused_from = CASE WHEN e.owner IS NULL AND e.paused_from IS NULL THEN ${from('e.status')} ELSE e.paused_from END,
      queue = CASE WHEN e.owner IS NULL THEN ${QUEUE} ELSE e.queue END`,
    resume(bit) {
      const left = `nullif(coalesce(e.paused, 0) & ~${bit}, 0)`;
      const ends = (column: string, value: string) =>
        `${column} = CASE WHEN ${left} IS NULL THEN ${value} ELSE e.${column} END`;
      return [
        `paused = ${left}`,
        ends('status', status),
        ends('queue', queue),
        ends('paused_from', 'NULL'),
        // A trigger looks at an execution that has become due.
        'due_at = e.due_at',
      ].join(', ');
    },
    released: (isReleased, x) => {
      const parks = `e.paused IS NOT NULL AND ${isReleased}`;
      return `status = CASE WHEN ${parks} THEN 'paused' ELSE ${x}.status END,
        paused_from = CASE WHEN ${parks} THEN ${from(`${x}.status`)} END, queue = CASE WHEN ${parks} THEN ${QUEUE} ELSE e.queue END`;
    },
    left: `paused = NULL, queue = CASE WHEN e.owner IS NULL THEN NULL ELSE e.queue END, paused_from = NULL`,
    status,
  };
}

export const PAUSES_IN_POSTGRES = pauseSql((text, part) => `strpos(${text}, ${part})`);
export const PAUSES_IN_SQLITE = pauseSql((text, part) => `instr(${text}, ${part})`);

/** The statuses of executions that have not ended, in SQL. */
export const OPEN = `('queued', 'running', 'waiting', 'paused')`;
