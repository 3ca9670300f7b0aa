/** Follows one execution until it ends: shows its agents on stderr as they end, and its output on stdout. */

import type { OrchestratorEvent } from '../../engine/events/event.ts';
import type { Service } from '../service/service.ts';
import type { Output } from '../terminal/output.ts';
import { formatDuration, oneLine, printJson } from '../terminal/text.ts';
import { createLiveProgress } from './live-progress.ts';
import { createPlainProgress } from './plain-progress.ts';

const NAME_WIDTH = 14;
const TICK_MS = 80;

interface WatchOptions {
  /** Prints only the events, each as a line of JSON on stdout. */
  readonly json: boolean;
  readonly signal: AbortSignal;
}

/** @returns 0 when the execution completed, otherwise 1 */
export async function watchExecution(
  { executions }: Service,
  id: string,
  { json, signal }: WatchOptions,
  output: Output,
): Promise<number> {
  const { print, say } = output;
  if (json) {
    let end: OrchestratorEvent | undefined;
    for await (const { event } of executions.events(id, { signal })) {
      // Line ends inside texts are escaped, so all others are layout.
      print(`${printJson(event).replace(/\n */g, ' ')}\n`);
      end = event;
    }
    return end?.event === 'execution.completed' ? 0 : 1;
  }
  // Without its definition, the flow of an execution is not shown.
  const definition = output.live ? await executions.definition(id).catch(() => undefined) : undefined;
  const shown = show(output, definition);
  let end: OrchestratorEvent | undefined;
  try {
    for await (const { event } of executions.events(id, { signal })) {
      if (event.event === 'execution.started') say(`${oneLine(event.data.ensemble)} ${oneLine(event.data.id)}\n`);
      else if (event.event.startsWith('execution.')) end = event;
      else shown.update(event);
    }
  } finally {
    shown.end(end !== undefined);
  }
  return end ? printEnd(end, output) : 1;
}

type Definition = Awaited<ReturnType<Service['executions']['definition']>>;

function show({ stream, colors, live }: Output, found: Definition | undefined) {
  // While an event is applied, the clock shows the event's own time.
  let at: number | undefined;
  const now = () => ({ monotonic: at ?? Date.now(), wall: Date.now() });
  const create = live ? createLiveProgress : createPlainProgress;
  const given = { stream, colors, now, nameWidth: NAME_WIDTH };
  const progress = create(found ? { ...given, definition: found.definition } : given);
  const timer = live ? setInterval(() => progress.tick(), TICK_MS) : undefined;
  return {
    update(event: OrchestratorEvent) {
      at = Date.parse(event.timestamp);
      progress.update(event);
      at = undefined;
    },
    /** @param hasEnded - whether the execution has ended, and not only the watching */
    end(hasEnded: boolean) {
      clearInterval(timer);
      if (hasEnded || live) progress.finish();
    },
  };
}

// Uses only the event: a server that is stopping accepts no further requests.
function printEnd(end: OrchestratorEvent, { print, say, colors }: Pick<Output, 'print' | 'say' | 'colors'>): number {
  const took = 'duration' in end.data ? ` ${formatDuration(end.data.duration)}` : '';
  switch (end.event) {
    case 'execution.completed':
      say(`${colors.green('✓')} completed in${took}\n`);
      print(`${printJson(end.data.output)}\n`);
      return 0;
    case 'execution.failed':
      say(`${colors.red('✗')} failed after${took}: ${oneLine(end.data.error.message)}\n`);
      return 1;
    default:
      say(`${colors.red('✗')} ${end.event === 'execution.timeout' ? 'timed out' : 'cancelled'} after${took}\n`);
      return 1;
  }
}
