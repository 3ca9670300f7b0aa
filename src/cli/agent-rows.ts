/** What a run's events say about its agents so far: one row an agent, in the order in which they were met. */

import type { OrchestratorEvent } from '../engine/model/event.ts';
import { passOf } from './flow-places.ts';

export interface AgentRow {
  readonly name: string;
  /** Runs at work now; more than one only in a `foreach`. */
  active: number;
  completed: number;
  failed: number;
  skipped: number;
  /** The run ended while it was at work. */
  stopped: boolean;
  /** On the clock of {@link AgentRows.apply}, at which the first run began. */
  startedAt: number;
  /** Milliseconds that the row took when nothing of it is at work. */
  duration: number;
  /** Attempts of the run that was told of last, the one at hand included. */
  attempts: number;
  /** Attempts beyond the first, of all runs. */
  retries: number;
  /** Runs at work that have failed before, by their key: the attempt that comes next, and the instant (Unix ms) of its begin. */
  readonly again: Map<string, { readonly attempt: number; readonly retryAt: number }>;
  /** The newest failure, with the item or round that it is of. */
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
  // Of several runs, the time from the first one's start is what was waited for.
  row.duration = row.completed + row.failed > 1 ? now - row.startedAt : duration;
}

/** Nothing of it is at work any more. */
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
  /** Nothing is at work any more. */
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
