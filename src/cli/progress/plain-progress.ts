/** Progress for a log or a pipe, where lines can't be redrawn: a line for each event. */

import { passOf } from '../../engine/ensemble/flow-places.ts';
import type { OrchestratorEvent } from '../../engine/events/event.ts';
import { count, formatDuration, oneLine } from '../terminal/text.ts';
import { type AgentRow, createAgentRows } from './agent-rows.ts';
import type { ProgressDisplay, ProgressOptions } from './live-progress.ts';

/** How many completions of one agent get a line each; `finish` writes one line for the others. */
const LINES_PER_AGENT = 10;
/** After this time without a line, the active agents are listed. */
const SILENCE_MS = 10_000;

export function createPlainProgress({ stream, now, nameWidth }: ProgressOptions): ProgressDisplay {
  const agents = createAgentRows();
  /** How many lines there are for each kind of event that is not an agent's. */
  const lines = new Map<string, number>();
  let writtenAt = now().monotonic;
  const say = (name: string, text: string) => {
    stream.write(`  ${oneLine(name).padEnd(nameWidth)}  ${oneLine(text)}\n`);
    writtenAt = now().monotonic;
  };
  const left = (row: AgentRow) => row.completed - LINES_PER_AGENT;
  const attempts = (row: AgentRow) => (row.attempts > 1 ? `, ${row.attempts} attempts` : '');
  const placed = (key: string) => {
    const pass = passOf(key);
    return pass === undefined ? '' : ` (${pass})`;
  };
  return {
    update(event) {
      const { monotonic, wall } = now();
      const line = describeStep(event, wall);
      if (line) {
        const number = (lines.get(event.event) ?? 0) + 1;
        lines.set(event.event, number);
        if (number <= LINES_PER_AGENT) say(...line);
        return;
      }
      const row = agents.apply(event, monotonic);
      if (!row) return;
      switch (event.event) {
        case 'agent.completed': {
          const { duration, key } = event.data;
          if (left(row) <= 0) say(row.name, `completed in ${formatDuration(duration)}${attempts(row)}${placed(key)}`);
          break;
        }
        case 'agent.failed': {
          const { duration, key, error } = event.data;
          const what = `failed in ${formatDuration(duration)}${attempts(row)}${placed(key)}`;
          say(row.name, `${what}: ${error.message}`);
          break;
        }
        case 'agent.retrying': {
          const { attempt, key, retryAt, error } = event.data;
          const next = retryAt > wall ? `, next in ${formatDuration(retryAt - wall)}` : ', retried';
          const what = `attempt ${attempt}${placed(key)} failed${next}`;
          say(row.name, `${what}: ${error.message}`);
          break;
        }
        case 'agent.skipped':
          say(row.name, `skipped${placed(event.data.key)}`);
          break;
      }
    },
    tick() {
      const { monotonic } = now();
      if (monotonic - writtenAt < SILENCE_MS) return;
      for (const row of agents.rows) {
        if (row.active > 0) say(row.name, `still running after ${formatDuration(monotonic - row.startedAt)}`);
      }
    },
    finish() {
      agents.end(now().monotonic);
      for (const row of agents.rows) {
        if (row.stopped) say(row.name, `stopped after ${formatDuration(row.duration)}`);
        if (left(row) > 0) say(row.name, `completed ${left(row).toLocaleString('en-US')} more times`);
      }
    },
  };
}

/** @param wall - Unix ms @returns the name and the text of a line; undefined for an event of an agent */
function describeStep(event: OrchestratorEvent, wall: number): [name: string, text: string] | undefined {
  switch (event.event) {
    case 'step.waiting': {
      const { until, signal } = event.data;
      if (until !== undefined && until <= wall) {
        const time = formatDuration(until - Date.parse(event.timestamp));
        return signal === undefined ? ['sleep', `waited ${time}`] : ['wait', `waited for signal ${signal}`];
      }
      const time = until === undefined ? '' : formatDuration(until - wall);
      if (signal === undefined) return ['sleep', `waits ${time}`];
      return ['wait', `waits for signal ${signal}${time && `, at most ${time}`}`];
    }
    case 'step.continued': {
      const { signal, timedOut } = event.data;
      return timedOut ? ['wait', `signal ${signal} did not come in time`] : ['sleep', 'is over'];
    }
    case 'signal.taken':
      return ['wait', `took signal ${event.data.signal}`];
    case 'foreach.started':
      return ['foreach', `begins with ${count(event.data.items, 'item')}`];
    case 'child.started':
      return [event.data.childEnsemble, `started as ${event.data.childId}`];
    case 'child.ended':
      return [event.data.childEnsemble, `${event.data.status} as ${event.data.childId}`];
    case 'model.completed': {
      const { model, usage, duration } = event.data;
      const tokens = `${usage.inputTokens} + ${usage.outputTokens} tokens`;
      return [event.data.agent, `${model} answered in ${formatDuration(duration)}, ${tokens}`];
    }
    case 'tool.completed': {
      const { tool, isError, duration } = event.data;
      return [event.data.agent, `${tool} ${isError ? 'reported an error' : 'answered'} in ${formatDuration(duration)}`];
    }
    case 'send.completed': {
      const { agent, to, isError, duration } = event.data;
      return [agent, `${isError ? 'could not send' : 'sent'} to ${to} in ${formatDuration(duration)}`];
    }
    case 'run.resumed':
      return ['execution', 'resumed after its process died'];
    default:
      return undefined;
  }
}
