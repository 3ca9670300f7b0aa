/** Follows one execution until it ends: its agents on stderr as they end, its output on stdout. */

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
  for await (const { event } of executions.events(id, { signal })) {
    // Line ends inside of texts are escaped: those that are left are the layout's.
    if (json) print(`${printJson(event).replace(/\n */g, ' ')}\n`);
    else if (event.event === 'execution.started') say(`${oneLine(event.data.ensemble)} ${oneLine(event.data.id)}\n`);
    else progress.update(event);
  }
  if (signal.aborted) return 1;
  const record = await executions.get(id);
  const { status, error, duration = 0 } = record;
  if (json) return status === 'completed' ? 0 : 1;
  progress.finish();
  if (status === 'completed') {
    say(`${colors.green('✓')} completed in ${formatDuration(duration)}\n`);
    print(`${printJson(record.output)}\n`);
    return 0;
  }
  const where = error?.agent === undefined ? '' : ` at ${oneLine(error.agent)}`;
  const why = error && status !== 'cancelled' ? `: ${oneLine(error.message)}` : '';
  say(
    `${colors.red('✗')} ${status === 'timed_out' ? 'ran out of time' : status}${where} after ${formatDuration(duration)}${why}\n`,
  );
  return 1;
}
