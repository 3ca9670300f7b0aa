/**
 * Explains why an entry was refused. An entry that an earlier call stored is a repetition: the answer to that call did
 * not arrive.
 */

import { isOrchestratorError } from '../../../../engine/base/errors.ts';
import { equalJson, type Json } from '../../../../engine/base/json/json.ts';
import { isDueAsReleased } from '../../../../engine/execution/due.ts';
import type { CommitEntry, NewExecution } from '../../../../engine/execution/stored-execution.ts';
import { columnsOf, ENDED } from '../../sql/fields.ts';
import { readEnd, readStep } from '../../sql/read-execution.ts';
import type { SqlConnection } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import type { Fence } from './commit-statements.ts';
import { STEP } from './record-columns.ts';

export interface Refusals {
  /** @returns the answer to a start whose id or key exists: `stored` for the same execution; undefined if both are unknown */
  answerStart(execution: NewExecution, id: string): 'stored' | 'exists' | undefined;
  /** Whether an earlier call stored the whole entry. */
  isRepeated(entry: CommitEntry, fence: Fence): boolean;
}

export function createRefusals(connection: SqlConnection, namespace: string): Refusals {
  const one = `FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND id = ?`;
  const selectSeed = connection.prepare(`SELECT seed ${one}`);
  const selectKey = connection.prepare(
    `SELECT 1 FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND idempotency_key = ?`,
  );
  const selectRow = connection.prepare(
    `SELECT ref, id, epoch, owner, due_at, cancel_requested, signals, ${columnsOf(ENDED)}, handover ${one}`,
  );
  const selectStep = connection.prepare(`SELECT ${STEP} FROM ensemble_steps WHERE execution = ? AND key = ?`);

  const isRepeated = ({ steps, end, release }: CommitEntry, { id, epoch }: Fence): boolean => {
    const [row] = selectRow.all([id]);
    if (row?.epoch !== epoch) return false;
    if (end) return row.finished_at !== null && isSame(readEnd(row), end);
    if (release) {
      if (row.owner !== null || row.status !== release.status) return false;
      const dueAt = row.due_at as number;
      // The instant of a request is not stored.
      const cancelRequestedAt = row.cancel_requested === 1 ? dueAt : undefined;
      return isDueAsReleased(dueAt, release, { cancelRequestedAt, signals: (row.signals ?? 0) as number });
    }
    const last = steps.at(-1);
    const [stored] = last ? selectStep.all([row.ref as number, toTextColumn(last.key)]) : [];
    return stored !== undefined && isSame(readStep(stored, id), last);
  };

  return {
    answerStart({ seed, idempotencyKey: key }, id) {
      const [row] = selectSeed.all([id]);
      if (!row) return key !== undefined && selectKey.all([toTextColumn(key)]).length > 0 ? 'exists' : undefined;
      return row.seed === toTextColumn(seed) ? 'stored' : 'exists';
    },
    isRepeated(entry, fence) {
      try {
        return isRepeated(entry, fence);
      } catch (error) {
        // A damaged row is not the row that the entry stored.
        if (isOrchestratorError(error, 'INTERNAL')) return false;
        throw error;
      }
    },
  };
}

/** Compares as JSON, as values are stored: a property that is undefined is absent. */
function isSame(stored: unknown, given: unknown): boolean {
  return equalJson(stored as Json, JSON.parse(JSON.stringify(given)) as Json);
}
