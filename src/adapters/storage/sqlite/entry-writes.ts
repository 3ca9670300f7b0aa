/** The writes that an entry of a commit is made of beside its steps, each one statement with the entry's fence inside. */

import type {
  CommitEntry,
  ExecutionEnd,
  NewDelivery,
  NewExecution,
  Release,
  StateChange,
} from '../../../engine/model/stored-execution.ts';
import { toJsonColumn, toOptionalJsonColumn } from '../sql/columns.ts';
import { toLiteral, toTextColumn } from './columns.ts';
import type { SqlConnection, SqlValue } from './connection.ts';
import { sizedStatement } from './sized-statement.ts';
import { HELD } from './statuses.ts';

/** Who writes to what, as it stands in columns. */
export interface Fence {
  readonly id: string;
  readonly epoch: number;
  readonly owner: string;
}

/** Each write tells whether it wrote. */
export interface EntryWrites {
  isHeld(fence: Fence): boolean;
  /** False when the id is there already, or the owner is not known. */
  startHeld(execution: NewExecution, fence: Fence): boolean;
  /** False when the id is there already. */
  startFree(execution: NewExecution, epoch: number, release: Release): boolean;
  /** Starts one that its owner is to give up in the same transaction, known or not. */
  startInPassing(execution: NewExecution, fence: Fence): boolean;
  /** Takes back a start of this transaction. */
  undoStart(fence: Fence): void;
  /** False also when the state has another version. */
  state(state: StateChange, fence: Fence): boolean;
  /** False also when it is there already. */
  delivery(delivery: NewDelivery, fence: Fence): boolean;
  release(release: Release, fence: Fence): boolean;
  end(end: ExecutionEnd, fence: Fence): boolean;
  /** What held executions and nothing else begin with. False when not all were written: then each is to be written by itself. */
  startGroup(entries: readonly CommitEntry[], owner: string): boolean;
  /** The ends of different executions, as `startGroup`. */
  endGroup(entries: readonly CommitEntry[], owner: string): boolean;
}

const START = `namespace, id, ensemble, version, epoch, seed, started_by, created_at, deadline_at, retry_of, input,
  parent_id, root_id`;

export function entryWrites(connection: SqlConnection, namespace: string): EntryWrites {
  const here = toLiteral(namespace);
  const held = `${HELD} WHERE namespace = ${here} AND id = ? AND epoch = ? AND owner = ?`;

  const selectHeld = connection.prepare(`SELECT 1 FROM ${held}`);
  // Without an owner that is known there is no status, and no row without one. (An INSERT that selects costs a third more.)
  const insertHeld = connection.prepare(`
    INSERT OR IGNORE INTO ensemble_executions (${START}, started_at, owner, status)
    VALUES (${here}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      (SELECT 'running' FROM ensemble_owners WHERE namespace = ${here} AND owner = ?))`);
  const insertFree = connection.prepare(`
    INSERT INTO ensemble_executions (${START}, started_at, status, due_at)
    VALUES (${here}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?) ON CONFLICT DO NOTHING`);
  const insertInPassing = connection.prepare(`
    INSERT INTO ensemble_executions (${START}, started_at, status, owner)
    VALUES (${here}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, 'running', ?) ON CONFLICT DO NOTHING`);
  const insertGroup = sizedStatement(
    connection,
    12,
    (rows) => `
    INSERT OR IGNORE INTO ensemble_executions (${START}, started_at, owner, status)
    SELECT ${here}, column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12,
      column7, ?, 'running'
    FROM ${rows} WHERE EXISTS (SELECT 1 FROM ensemble_owners WHERE namespace = ${here} AND owner = ?)`,
  );
  const deleteHeld = connection.prepare(`DELETE FROM ${held}`);
  const insertState = connection.prepare(`
    INSERT INTO ensemble_states (namespace, ensemble, version, updated_at, value) SELECT ${here}, ?, 1, ?, ? FROM ${held}
    ON CONFLICT DO NOTHING`);
  const updateState = connection.prepare(`
    UPDATE ensemble_states SET version = version + 1, updated_at = ?, value = ?
    WHERE namespace = ${here} AND ensemble = ? AND version = ? AND EXISTS (SELECT 1 FROM ${held})`);
  const insertDelivery = connection.prepare(`
    INSERT INTO ensemble_deliveries (execution, id, event, status, attempts, created_at, due_at, target, payload)
    SELECT ref, ?, ?, 'pending', 0, ?, ?, ?, ? FROM ${held}
    ON CONFLICT DO NOTHING`);
  // One that was asked to stop meanwhile is due at once, and so is one that waits and was given a signal of which its owner has
  // not heard. What is queued has not begun.
  const updateRelease = connection.prepare(`
    UPDATE ensemble_executions SET owner = NULL, status = ?, waits_for = ?,
      due_at = CASE WHEN cancel_requested = 1 THEN 0
        WHEN signalled_at IS NULL OR ? <> 'waiting' OR signals <= ? THEN ? ELSE min(?, signalled_at) END,
      started_at = CASE ? WHEN 'queued' THEN NULL ELSE started_at END
    WHERE ref = (SELECT ref FROM ${held})`);
  const updateEnd = connection.prepare(`
    UPDATE ensemble_executions SET owner = NULL, status = ?, output = ?, error = ?, finished_at = ?, duration = ?, agents = ?
    WHERE ref = (SELECT ref FROM ${held})`);
  const updateEnds = sizedStatement(
    connection,
    8,
    (rows) => `
    UPDATE ${HELD} SET owner = NULL, status = column3, output = column4, error = column5, finished_at = column6,
      duration = column7, agents = column8
    FROM ${rows} WHERE namespace = ${here} AND id = column1 AND epoch = column2 AND owner = ?`,
  );

  const columnsOf = (execution: NewExecution, epoch: number) => {
    const { id, ensemble, version, trigger, input, seed, createdAt, deadlineAt = null, retryOf } = execution;
    return [
      toTextColumn(id),
      toTextColumn(ensemble),
      toTextColumn(version),
      epoch,
      toTextColumn(seed),
      JSON.stringify(trigger),
      createdAt,
      deadlineAt,
      retryOf === undefined ? null : toTextColumn(retryOf),
      toJsonColumn(input),
      trigger.parentId === undefined ? null : toTextColumn(trigger.parentId),
      trigger.rootId === undefined ? null : toTextColumn(trigger.rootId),
    ];
  };

  return {
    isHeld: ({ id, epoch, owner }) => selectHeld.all([id, epoch, owner]).length > 0,
    startHeld(execution, { epoch, owner }) {
      const columns = columnsOf(execution, epoch);
      columns.push(execution.createdAt, owner, owner);
      return insertHeld.run(columns) > 0;
    },
    startGroup(entries, owner) {
      const params: SqlValue[] = [owner];
      for (const { start, epoch } of entries) params.push(...columnsOf(start as NewExecution, epoch));
      params.push(owner);
      return insertGroup.run(entries.length, params) === entries.length;
    },
    startFree(execution, epoch, { status, dueAt }) {
      const columns = columnsOf(execution, epoch);
      columns.push(status, dueAt);
      return insertFree.run(columns) > 0;
    },
    startInPassing(execution, { epoch, owner }) {
      const columns = columnsOf(execution, epoch);
      columns.push(owner);
      return insertInPassing.run(columns) > 0;
    },
    undoStart({ id, epoch, owner }) {
      deleteHeld.run([id, epoch, owner]);
    },
    state({ ensemble, expectedVersion, value, updatedAt }, { id, epoch, owner }) {
      const name = toTextColumn(ensemble);
      const text = toJsonColumn(value);
      if (expectedVersion === 0) return insertState.run([name, updatedAt, text, id, epoch, owner]) > 0;
      return updateState.run([updatedAt, text, name, expectedVersion, id, epoch, owner]) > 0;
    },
    delivery({ id: own, event, target, payload, createdAt, dueAt }, { id, epoch, owner }) {
      const about = [toTextColumn(own), toTextColumn(event), createdAt, dueAt];
      return insertDelivery.run([...about, toJsonColumn(target), toJsonColumn(payload), id, epoch, owner]) > 0;
    },
    release: ({ status, dueAt, signals = null, waitsFor }, { id, epoch, owner }) =>
      updateRelease.run([
        status,
        toOptionalJsonColumn(waitsFor),
        status,
        signals,
        dueAt,
        dueAt,
        status,
        id,
        epoch,
        owner,
      ]) > 0,
    end({ status, output, error, finishedAt, duration, agents }, { id, epoch, owner }) {
      const about = [status, toJsonColumn(output), toOptionalJsonColumn(error), finishedAt, duration, agents];
      return updateEnd.run([...about, id, epoch, owner]) > 0;
    },
    endGroup(entries, owner) {
      const params: SqlValue[] = [];
      for (const { executionId, epoch, end } of entries) {
        const { status, output, error, finishedAt, duration, agents } = end as ExecutionEnd;
        params.push(toTextColumn(executionId), epoch, status, toJsonColumn(output), toOptionalJsonColumn(error));
        params.push(finishedAt, duration, agents);
      }
      params.push(owner);
      return updateEnds.run(entries.length, params) === entries.length;
    },
  };
}
