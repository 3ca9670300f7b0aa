/** The state of an execution's agents from its events: one row for each agent, in the order of their first events. */

import { passOf } from '../../engine/ensemble/flow-places.ts';
import type { OrchestratorEvent } from '../../engine/events/event.ts';

export interface AgentRow {
  readonly name: string;
  /** The number of current runs; more than one only in a `foreach`. */
  active: number;
  completed: number;
  failed: number;
  skipped: number;
  /** The execution ended while the agent ran. */
  stopped: boolean;
  /** The begin of the first run, on the clock of {@link AgentRows.apply}. */
  startedAt: number;
  /** The time in ms that the row took; set when none of its runs is active. */
  duration: number;
  /** The attempts of the newest run, with the current one. */
  attempts: number;
  /** The attempts after the first, of all runs. */
  retries: number;
  /** Active runs that have failed before, by their key: their next attempt, and the instant (Unix ms) of its begin. */
  readonly again: Map<string, { readonly attempt: number; readonly retryAt: number }>;
  /** The newest failure, with its item or round. */
  message: string | undefined;
}

export function createAgentRow(name: string, now: number): AgentRow {
  return {
    name,
    active: 0,
    completed: 0,
    failed: 0,
    skipped: 0,
    stopped: false,
    startedAt: now,
    duration: 0,
    attempts: 1,
    retries: 0,
    again: new Map(),
    message: undefined,
  };
}

/** @param event - of this row's agent @param now - monotonic ms */
export function applyToRow(row: AgentRow, event: OrchestratorEvent, now: number): void {
  switch (event.event) {
    case 'agent.started':
      if (row.active === 0 && row.completed + row.failed === 0) row.startedAt = now;
      if (row.active === 0) row.attempts = 1;
      row.active += 1;
      break;
    case 'agent.retrying':
      row.attempts = event.data.attempt + 1;
      row.retries += 1;
      row.again.set(event.data.key, { attempt: row.attempts, retryAt: event.data.retryAt });
      row.message = messageOf(event.data);
      break;
    case 'agent.completed':
      row.completed += 1;
      row.attempts = row.again.get(event.data.key)?.attempt ?? 1;
      settle(row, now, event.data);
      break;
    case 'agent.failed':
      row.failed += 1;
      row.attempts = event.data.attempts;
      row.message = messageOf(event.data);
      settle(row, now, event.data);
      break;
    case 'agent.skipped':
      row.skipped += 1;
      break;
  }
}

function messageOf({ key, error }: { readonly key: string; readonly error: { readonly message: string } }): string {
  const pass = passOf(key);
  return pass === undefined ? error.message : `${pass}: ${error.message}`;
}

/** How many of a row's runs wait for their next attempt. @param wall - Unix ms */
export function waitingRuns({ again }: AgentRow, wall: number): number {
  let waiting = 0;
  for (const { retryAt } of again.values()) if (retryAt > wall) waiting += 1;
  return waiting;
}

function settle(
  row: AgentRow,
  now: number,
  { key, duration }: { readonly key: string; readonly duration: number },
): void {
  row.active = Math.max(0, row.active - 1);
  row.again.delete(key);
  // For several runs, the duration begins with the first run.
  row.duration = row.completed + row.failed > 1 ? now - row.startedAt : duration;
}

/** Ends the active runs of a row when the execution has ended. */
export function endRow(row: AgentRow, now: number): void {
  if (row.active === 0) return;
  row.stopped = true;
  row.active = 0;
  row.duration = now - row.startedAt;
}

export interface AgentRows {
  readonly rows: readonly AgentRow[];
  /** @param now - monotonic ms @returns the row that changed */
  apply(event: OrchestratorEvent, now: number): AgentRow | undefined;
  /** Called when the execution has ended. */
  end(now: number): void;
}

export function createAgentRows(): AgentRows {
  const rows = new Map<string, AgentRow>();
  return {
    get rows() {
      return [...rows.values()];
    },
    apply(event, now) {
      if (!event.event.startsWith('agent.')) return undefined;
      const { agent } = event.data as { readonly agent: string };
      const row = rows.get(agent) ?? createAgentRow(agent, now);
      rows.set(agent, row);
      applyToRow(row, event, now);
      return row;
    },
    end(now) {
      for (const row of rows.values()) endRow(row, now);
    },
  };
}
