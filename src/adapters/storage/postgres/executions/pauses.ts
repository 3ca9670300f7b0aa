/** Pauses executions, and ends pauses. */

import type { ExecutionStatus } from '../../../../engine/execution/execution.ts';
import { type ExecutionStore, PAUSE_SCOPES } from '../../../../engine/execution/execution-store.port.ts';
import { OPEN, PAUSES_IN_POSTGRES } from '../../sql/pauses.ts';
import { type SqlClient, type SqlParam, type Statement, statement, toArray } from '../drivers/driver.ts';
import { toTextColumn } from '../tables/columns.ts';
import type { Names } from '../tables/names.ts';

/** The methods of the storage port in this file. */
type Pausing = Pick<ExecutionStore, 'pause' | 'resume' | 'pauseAll' | 'resumeAll'>;

const BIT = '$3::integer';

/** @param onFreed - called when an execution became due, or when its worker must be notified of a pause */
export function createPausing(
  client: SqlClient,
  { executions }: Names,
  namespace: string,
  onFreed: () => void,
): Pausing {
  const { pause, resume, isPausedBy } = PAUSES_IN_POSTGRES;
  const one = (change: string, where: string) =>
    statement(
      `UPDATE ${executions} e SET ${change}
      WHERE namespace = $1 AND id = $2 AND finished_at IS NULL AND cancel_at IS NULL ${where} RETURNING status`,
      ['status'],
    );
  const all = (change: string, where: string) =>
    statement(
      `UPDATE ${executions} e SET ${change} FROM (
        SELECT e.ref FROM ${executions} e WHERE e.namespace = $1 AND e.finished_at IS NULL AND ${where}
        ORDER BY e.ref LIMIT $4::bigint FOR NO KEY UPDATE
      ) x WHERE e.ref = x.ref`,
    );
  const selectStatus = statement(`SELECT status FROM ${executions} WHERE namespace = $1 AND id = $2`, ['status']);
  const pauseOne = one(pause(BIT), '');
  const resumeOne = one(resume(BIT), `AND ${isPausedBy(BIT)}`);
  const pauseAll = all(
    pause(BIT),
    `e.status IN ${OPEN} AND e.cancel_at IS NULL AND NOT (${isPausedBy(BIT)}) AND ($2::text IS NULL OR e.ensemble = $2)`,
  );
  const resumeAll = all(resume(BIT), `e.paused IS NOT NULL AND ${isPausedBy(BIT)} AND e.ensemble <> ALL ($2::text[])`);
  const run = async (made: Statement, ...params: readonly SqlParam[]) => {
    const result = await client.run(made, [namespace, ...params]);
    if (result.count > 0) onFreed();
    return result;
  };
  const changeOne = async (made: Statement, executionId: string, bit: number) => {
    const id = toTextColumn(executionId);
    const { rows } = await run(made, id, bit);
    const [row] = rows[0] ? rows : (await client.run(selectStatus, [namespace, id])).rows;
    return (row?.status ?? undefined) as ExecutionStatus | undefined;
  };
  return {
    pause: (id, scope) => changeOne(pauseOne, id, PAUSE_SCOPES[scope]),
    resume: (id, scope) => changeOne(resumeOne, id, PAUSE_SCOPES[scope]),
    async pauseAll(scope, ensemble, limit) {
      const name = ensemble === undefined ? null : toTextColumn(ensemble);
      return (await run(pauseAll, name, PAUSE_SCOPES[scope], limit)).count;
    },
    async resumeAll(scope, except, limit) {
      return (await run(resumeAll, toArray(except.map(toTextColumn)), PAUSE_SCOPES[scope], limit)).count;
    },
  };
}
