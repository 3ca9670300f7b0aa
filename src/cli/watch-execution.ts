/** Follows one execution until it ends: its agents on stderr as they end, its output on stdout. */

import type { OrchestratorEvent } from '../engine/model/event.ts';
import type { Output } from './output.ts';
import { createPlainProgress } from './plain-progress.ts';
import type { Service } from './service.ts';
import { formatDuration, oneLine, printJson } from './text.ts';

const NAME_WIDTH = 14;

interface WatchOptions {
  /** Prints each event as a line of JSON on stdout, and nothing else. */
  readonly json: boolean;
  readonly signal: AbortSignal;
}

/** @returns 0 when it completed, otherwise 1 */
export async function watchExecution(
  { executions }: Service,
  id: string,
  { json, signal }: WatchOptions,
  { print, say, colors, stream }: Output,
): Promise<number> {
  const now = () => ({ monotonic: performance.now(), wall: Date.now() });
  const progress = createPlainProgress({ stream, colors, now, nameWidth: NAME_WIDTH });
  let end: OrchestratorEvent | undefined;
  for await (const { event } of executions.events(id, { signal })) {
    // Line ends inside of texts are escaped: those that are left are the layout's.
    if (json) print(`${printJson(event).replace(/\n */g, ' ')}\n`);
    else if (event.event === 'execution.started') say(`${oneLine(event.data.ensemble)} ${oneLine(event.data.id)}\n`);
    else progress.update(event);
    if (event.event !== 'execution.started' && event.event.startsWith('execution.')) end = event;
  }
  if (json) return end?.event === 'execution.completed' ? 0 : 1;
  if (!end) return 1;
  progress.finish();
  return report(end, { print, say, colors });
}

// From the event alone: a server that is stopping has let the execution end, and answers nothing more.
function report(end: OrchestratorEvent, { print, say, colors }: Pick<Output, 'print' | 'say' | 'colors'>): number {
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
      say(`${colors.red('✗')} ${end.event === 'execution.timeout' ? 'ran out of time' : 'cancelled'} after${took}\n`);
      return 1;
  }
}
