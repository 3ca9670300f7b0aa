/** The statements that write an entry of a commit, except its steps. Each statement contains the entry's fence. */

import type { Charge } from '../../../../engine/access/quota.ts';
import { keptUntilEnd } from '../../../../engine/execution/limits/flow-limit.ts';
import type {
  ExecutionEnd,
  ExpectedDocument,
  NewExecution,
  Release,
  StateChange,
} from '../../../../engine/execution/stored-execution.ts';
import { toHandoverColumn, toJsonColumn, toOptionalJsonColumn } from '../../sql/columns.ts';
import { DUE_IN_SQLITE } from '../../sql/due.ts';
import { ACCEPTED, columnsOf, ENDED, writeFields } from '../../sql/fields.ts';
import { PAUSES_IN_SQLITE } from '../../sql/pauses.ts';
import { laterQueue, queueAtStart } from '../../sql/queues/admit-starts.ts';
import type { SqlConnection } from '../drivers/driver.ts';
import { toLiteral, toTextColumn } from '../tables/columns.ts';
import { HELD } from '../tables/names.ts';

/** The worker that writes and the execution that it writes to, as column values. */
export interface Fence {
  readonly id: string;
  readonly epoch: number;
  readonly worker: string;
}

/** Each write returns whether it wrote. */
export interface CommitStatements {
  isHeld(fence: Fence): boolean;
  isRegistered(worker: string): boolean;
  /** Whether a document has the expected tag. @param now - Unix ms */
  isAsExpected(document: ExpectedDocument, now: number): boolean;
  /** Starts an execution that the worker holds. False when the id or the key exists already, or the worker is not registered. */
  startHeld(execution: NewExecution, fence: Fence, charge: Charge | undefined): boolean;
  /** Starts an execution that no worker holds. False when the id or the key exists already. */
  startFree(execution: NewExecution, epoch: number, release: Release, charge: Charge | undefined): boolean;
  /**
   * Starts an execution that this transaction also releases, whether or not the worker is registered. False when the id
   * or the key exists already.
   */
  startToRelease(execution: NewExecution, fence: Fence, charge: Charge | undefined): boolean;
  /** For an execution that this transaction started, or an earlier one: lists it by its tags, and marks the one that it retries. */
  noteStart(execution: NewExecution): void;
  /** Deletes an execution that this transaction started. */
  undoStart(fence: Fence): void;
  /** False when the write is fenced, or when the state has another version. */
  state(state: StateChange, fence: Fence): boolean;
  release(release: Release, fence: Fence): boolean;
  end(end: ExecutionEnd, fence: Fence): boolean;
}

const START = [
  ...columnsOf(ACCEPTED),
  ...['epoch', 'parent_id', 'root_id', 'account', 'slots', 'retried', 'queue', 'queue_after_begin', 'kept_until_end'],
];
const VALUES = START.map(() => '?').join(', ');

export function commitStatements(connection: SqlConnection, namespace: string): CommitStatements {
  const here = toLiteral(namespace);
  const held = `${HELD} WHERE namespace = ${here} AND id = ? AND epoch = ? AND owner = ?`;

  const selectHeld = connection.prepare(`SELECT 1 FROM ${held}`);
  const selectWorker = connection.prepare(`SELECT 1 FROM ensemble_owners WHERE namespace = ${here} AND owner = ?`);
  const selectDocument = connection.prepare(`
    SELECT 1 FROM ensemble_documents
    WHERE namespace = ${here} AND kind = ? AND name = ? AND tag = ? AND (expires_at IS NULL OR expires_at > ?)`);
  // The status is null for a worker that is not registered, and a row without a status is ignored. INSERT ... SELECT
  // would cost a third more.
  const insertHeld = connection.prepare(`
    INSERT OR IGNORE INTO ensemble_executions (namespace, ${START}, started_at, owner, status)
    VALUES (${here}, ${VALUES}, ?, ?,
      (SELECT 'running' FROM ensemble_owners WHERE namespace = ${here} AND owner = ?))`);
  const insertFree = connection.prepare(`
    INSERT INTO ensemble_executions (namespace, ${START}, started_at, status, due_at, handover)
    VALUES (${here}, ${VALUES}, NULL, ?, ?, ?) ON CONFLICT DO NOTHING`);
  const insertToRelease = connection.prepare(`
    INSERT INTO ensemble_executions (namespace, ${START}, started_at, status, owner)
    VALUES (${here}, ${VALUES}, NULL, 'running', ?) ON CONFLICT DO NOTHING`);
  const insertTags = connection.prepare(`
    INSERT OR IGNORE INTO ensemble_tags (namespace, tag, created_at, id) SELECT ${here}, value, ?, ? FROM json_each(?)`);
  const updateRetried = connection.prepare(`
    UPDATE ensemble_executions SET retried = 1 WHERE namespace = ${here} AND id = ?`);
  const deleteHeld = connection.prepare(`DELETE FROM ${held}`);
  const insertState = connection.prepare(`
    INSERT INTO ensemble_states (namespace, ensemble, version, updated_at, value) SELECT ${here}, ?, 1, ?, ? FROM ${held}
    ON CONFLICT DO NOTHING`);
  const updateState = connection.prepare(`
    UPDATE ensemble_states SET version = version + 1, updated_at = ?, value = ?
    WHERE namespace = ${here} AND ensemble = ? AND version = ? AND EXISTS (SELECT 1 FROM ${held})`);
  // A queued execution has not started.
  const updateRelease = connection.prepare(`
    UPDATE ensemble_executions AS e SET owner = NULL, ${PAUSES_IN_SQLITE.released('true', 'x')}, waits_for = x.waits_for,
      due_at = ${DUE_IN_SQLITE.released('x')}, started_at = CASE x.status WHEN 'queued' THEN NULL ELSE e.started_at END,
      handover = coalesce(x.handover, e.handover), resumed_at = CASE WHEN x.handover IS NULL THEN e.resumed_at END
    FROM (SELECT ? AS status, ? AS due_at, ? AS seen, ? AS waits_for, ? AS handover) AS x WHERE e.ref = (SELECT ref FROM ${held})`);
  const updateEnd = connection.prepare(`
    UPDATE ensemble_executions SET owner = NULL, ${columnsOf(ENDED).map((name) => `${name} = ?`)}, handover = ?
    WHERE ref = (SELECT ref FROM ${held})`);

  const toText = (text: string | undefined) => (text === undefined ? null : toTextColumn(text));
  const valuesOf = (execution: NewExecution, epoch: number, charge: Charge | undefined, begins = true) => {
    const { limits } = execution;
    const { parentId, rootId } = execution.trigger;
    const values = writeFields(ACCEPTED, execution, toTextColumn);
    values.push(epoch, parentId === undefined ? null : toTextColumn(parentId));
    values.push(rootId === undefined ? null : toTextColumn(rootId));
    values.push(charge?.slots === undefined ? null : toTextColumn(charge.account), charge?.slots ?? null);
    values.push(execution.trigger.dryRun ? 1 : null);
    if (!limits) values.push(null, null, null);
    else values.push(toText(queueAtStart(limits, begins)), toText(laterQueue(limits)), toText(keptUntilEnd(limits)));
    return values;
  };

  return {
    isHeld: ({ id, epoch, worker }) => selectHeld.all([id, epoch, worker]).length > 0,
    isRegistered: (worker) => selectWorker.all([worker]).length > 0,
    isAsExpected: ({ kind, name, tag }, now) => selectDocument.all([kind, name, toTextColumn(tag), now]).length > 0,
    startHeld(execution, { epoch, worker }, charge) {
      const columns = valuesOf(execution, epoch, charge);
      columns.push(execution.createdAt, worker, worker);
      return insertHeld.run(columns) > 0;
    },
    startFree(execution, epoch, { status, dueAt, handover }, charge) {
      const columns = valuesOf(execution, epoch, charge, false);
      columns.push(status, dueAt, toOptionalJsonColumn(handover));
      return insertFree.run(columns) > 0;
    },
    startToRelease(execution, { epoch, worker }, charge) {
      const columns = valuesOf(execution, epoch, charge, false);
      columns.push(worker);
      return insertToRelease.run(columns) > 0;
    },
    noteStart({ id, createdAt, tags, retryOf }) {
      if (tags) insertTags.run([createdAt, toTextColumn(id), JSON.stringify(tags)]);
      if (retryOf !== undefined) updateRetried.run([toTextColumn(retryOf)]);
    },
    undoStart({ id, epoch, worker }) {
      deleteHeld.run([id, epoch, worker]);
    },
    state({ ensemble, expectedVersion, value, updatedAt }, { id, epoch, worker }) {
      const name = toTextColumn(ensemble);
      const text = toJsonColumn(value);
      if (expectedVersion === 0) return insertState.run([name, updatedAt, text, id, epoch, worker]) > 0;
      return updateState.run([updatedAt, text, name, expectedVersion, id, epoch, worker]) > 0;
    },
    release(release, { id, epoch, worker }) {
      const { status, dueAt, signals = null, waitsFor } = release;
      const about = [status, dueAt, signals, toOptionalJsonColumn(waitsFor), toHandoverColumn({ release })];
      return updateRelease.run([...about, id, epoch, worker]) > 0;
    },
    end(end, { id, epoch, worker }) {
      const ended = writeFields(ENDED, end, toTextColumn);
      return updateEnd.run([...ended, toHandoverColumn({ end }), id, epoch, worker]) > 0;
    },
  };
}
