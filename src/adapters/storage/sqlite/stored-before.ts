/** Whether an entry that is refused was stored by an earlier call: then its writer did not hear of it, and repeats it. */

import { isOrchestratorError } from '../../../engine/errors.ts';
import { equalJson, type Json } from '../../../engine/json.ts';
import type { CommitEntry, NewExecution } from '../../../engine/model/stored-execution.ts';
import { readEnd, readStep } from '../sql/read-execution.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { SqlConnection } from './connection.ts';
import type { Fence } from './entry-writes.ts';
import { STEP } from './steps-table.ts';

export interface StoredBefore {
  /** What to answer for a start: undefined when its id is not known. */
  startUnder(execution: NewExecution, id: string): 'stored' | 'exists' | undefined;
  isRepeated(entry: CommitEntry, fence: Fence): boolean;
}

export function storedBefore(connection: SqlConnection, namespace: string): StoredBefore {
  const one = `FROM ensemble_executions WHERE namespace = ${toLiteral(namespace)} AND id = ?`;
  const selectSeed = connection.prepare(`SELECT seed ${one}`);
  const selectPlace = connection.prepare(
    `SELECT ref, id, epoch, owner, status, due_at, cancel_requested, signals, finished_at, duration, agents, error, output ${one}`,
  );
  const selectStep = connection.prepare(`SELECT ${STEP} FROM ensemble_steps WHERE execution = ? AND key = ?`);

  const isRepeated = ({ steps, end, release }: CommitEntry, { id, epoch }: Fence): boolean => {
    const [row] = selectPlace.all([id]);
    if (row?.epoch !== epoch) return false;
    if (end) return row.finished_at !== null && isSame(readEnd(row), end);
    if (release) {
      const wasSignalled = release.status === 'waiting' && row.signals !== null;
      // Who is asked to stop, or given a signal, is due earlier.
      const isDue = row.due_at === release.dueAt || row.cancel_requested === 1 || wasSignalled;
      return row.owner === null && row.status === release.status && isDue;
    }
    const last = steps.at(-1);
    const [stored] = last ? selectStep.all([row.ref as number, toTextColumn(last.key)]) : [];
    return stored !== undefined && isSame(readStep(stored, id), last);
  };

  return {
    startUnder({ seed }, id) {
      const [row] = selectSeed.all([id]);
      if (!row) return undefined;
      return row.seed === toTextColumn(seed) ? 'stored' : 'exists';
    },
    isRepeated(entry, fence) {
      try {
        return isRepeated(entry, fence);
      } catch (error) {
        // A damaged row is not what the entry stored.
        if (isOrchestratorError(error, 'INTERNAL')) return false;
        throw error;
      }
    },
  };
}

/** As they are stored: what is undefined is not there. */
function isSame(stored: unknown, given: unknown): boolean {
  return equalJson(stored as Json, JSON.parse(JSON.stringify(given)) as Json);
}
