/** What a run's events say about its agents so far: one row an agent, in the order in which they were met. */

import type { OrchestratorEvent } from '../engine/model/event.ts';

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
  /** Attempts of the newest run, the one at hand included; of no meaning while several are at work. */
  attempts: number;
  /** Attempts beyond the first, of all runs. */
  retries: number;
  /** The instant (Unix ms) at which the next attempt begins, while one is awaited. */
  retryAt: number | undefined;
  /** The newest failure. */
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
    retryAt: undefined,
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
      row.retryAt = event.data.retryAt;
      row.message = event.data.error.message;
      break;
    case 'agent.completed':
      row.completed += 1;
      settle(row, now, event.data.duration);
      break;
    case 'agent.failed':
      row.failed += 1;
      row.attempts = event.data.attempts;
      row.message = event.data.error.message;
      settle(row, now, event.data.duration);
      break;
    case 'agent.skipped':
      row.skipped += 1;
      break;
  }
}

function settle(row: AgentRow, now: number, duration: number): void {
  row.active = Math.max(0, row.active - 1);
  row.retryAt = undefined;
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
