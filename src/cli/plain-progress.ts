/** Progress where nothing can be drawn anew (a log, a pipe): a line for everything that happened. */

import { type AgentRow, createAgentRows } from './agent-rows.ts';
import { passOf } from './flow-places.ts';
import type { Progress, ProgressOptions } from './live-progress.ts';
import { formatDuration, oneLine } from './text.ts';

/** Completions of one agent that get a line each; those of a large `foreach` are summed up at the end. */
const LINES_AN_AGENT = 10;
/** Silence after which the agents at work are named. */
const SILENCE_MS = 10_000;

export function createPlainProgress({ stream, now, nameWidth }: ProgressOptions): Progress {
  const agents = createAgentRows();
  /** Skips that were told: a run that was given up for a wait is walked again when it goes on. */
  const skipped = new Set<string>();
  let waits = 0;
  let children = 0;
  let spokeAt = now().monotonic;
  const say = (name: string, text: string) => {
    stream.write(`  ${oneLine(name).padEnd(nameWidth)}  ${oneLine(text)}\n`);
    spokeAt = now().monotonic;
  };
  const left = (row: AgentRow) => row.completed - LINES_AN_AGENT;
  const attempts = (row: AgentRow) => (row.attempts > 1 ? `, ${row.attempts} attempts` : '');
  const placed = (key: string) => {
    const pass = passOf(key);
    return pass === undefined ? '' : ` (${pass})`;
  };
  return {
    update(event) {
      const { monotonic, wall } = now();
      if (event.event === 'step.waiting') {
        waits += 1;
        const { until, signal } = event.data;
        const most = until === undefined ? '' : formatDuration(until - wall);
        const what = signal === undefined ? most : `for signal ${signal}${most && `, at most ${most}`}`;
        if (waits <= LINES_AN_AGENT) say(signal === undefined ? 'sleep' : 'wait', `waits ${what}`);
      }
      if (event.event === 'child.ended' && ++children <= LINES_AN_AGENT) {
        say(event.data.ensemble, `${event.data.status} as ${event.data.childId}`);
      }
      if (event.event === 'agent.skipped' && skipped.size === skipped.add(event.data.key).size) return;
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
          const what = `attempt ${attempt}${placed(key)} failed, next in ${formatDuration(retryAt - wall)}`;
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
      if (monotonic - spokeAt < SILENCE_MS) return;
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
