/** Pauses executions, and ends pauses. */

import type { ExecutionStatus } from '../../../../engine/execution/execution.ts';
import { type ExecutionStore, PAUSE_SCOPES } from '../../../../engine/execution/execution-store.port.ts';
import { OPEN, PAUSES_IN_SQLITE } from '../../sql/pauses.ts';
import type { SqlConnection } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import { HELD, OPEN_OR_FAILED } from '../tables/names.ts';

/** The methods of the storage port in this file. */
type Pausing = Pick<ExecutionStore, 'pause' | 'resume' | 'pauseAll' | 'resumeAll'>;

const BIT = '?2';

export function createPausing(connection: SqlConnection, namespace: string): Pausing {
  const here = `namespace = ${toLiteral(namespace)}`;
  const { pause, resume, isPausedBy } = PAUSES_IN_SQLITE;
  const one = (change: string, where: string) =>
    connection.prepare(`
      UPDATE ensemble_executions AS e SET ${change}
      WHERE ${here} AND id = ?1 AND finished_at IS NULL AND cancel_requested = 0 ${where}`);
  const all = (change: string, rows: string, where: string) =>
    connection.prepare(`
      UPDATE ensemble_executions AS e SET ${change} WHERE ref IN (
        SELECT e.ref FROM ${rows} AS e WHERE e.${here} AND e.finished_at IS NULL AND ${where} LIMIT ?3)`);
  // Those that are free and those that are held are in different indexes.
  const open = `(
    SELECT * FROM ensemble_executions WHERE ${here} AND ${OPEN_OR_FAILED} AND status IN ${OPEN}
    UNION ALL SELECT * FROM ${HELD} WHERE ${here} AND owner IS NOT NULL)`;
  const selectStatus = connection.prepare(`SELECT status FROM ensemble_executions WHERE ${here} AND id = ?`);
  const pauseOne = one(pause(BIT), '');
  const resumeOne = one(resume(BIT), `AND ${isPausedBy(BIT)}`);
  const pauseAll = all(
    pause(BIT),
    open,
    `e.cancel_requested = 0 AND NOT (${isPausedBy(BIT)}) AND (?1 IS NULL OR e.ensemble = ?1)`,
  );
  const resumeAll = all(
    resume(BIT),
    'ensemble_executions',
    `e.paused IS NOT NULL AND ${isPausedBy(BIT)} AND e.ensemble NOT IN (SELECT value FROM json_each(?1))`,
  );
  const changeOne = (statement: typeof pauseOne, executionId: string, bit: number) => {
    const id = toTextColumn(executionId);
    statement.run([id, bit]);
    return selectStatus.all([id])[0]?.status as ExecutionStatus | undefined;
  };
  return {
    pause: (id, scope) => changeOne(pauseOne, id, PAUSE_SCOPES[scope]),
    resume: (id, scope) => changeOne(resumeOne, id, PAUSE_SCOPES[scope]),
    pauseAll(scope, ensemble, limit) {
      const name = ensemble === undefined ? null : toTextColumn(ensemble);
      return pauseAll.run([name, PAUSE_SCOPES[scope], limit]);
    },
    resumeAll: (scope, except, limit) =>
      resumeAll.run([JSON.stringify(except.map(toTextColumn)), PAUSE_SCOPES[scope], limit]),
  };
}
