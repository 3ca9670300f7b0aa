/** Follows one execution until it ends: its flow on stderr, as its agents end, its output on stdout. */

import type { OrchestratorEvent } from '../engine/model/event.ts';
import { createLiveProgress } from './live-progress.ts';
import type { Output } from './output.ts';
import { createPlainProgress } from './plain-progress.ts';
import type { Service } from './service.ts';
import { formatDuration, oneLine, printJson } from './text.ts';

const NAME_WIDTH = 14;
const TICK_MS = 80;

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
  output: Output,
): Promise<number> {
  const { print, say } = output;
  if (json) {
    let end: OrchestratorEvent | undefined;
    for await (const { event } of executions.events(id, { signal })) {
      // Line ends inside of texts are escaped: those that are left are the layout's.
      print(`${printJson(event).replace(/\n */g, ' ')}\n`);
      end = event;
    }
    return end?.event === 'execution.completed' ? 0 : 1;
  }
  const definition = output.live ? await definitionOf(executions, id) : undefined;
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
  return end ? report(end, output) : 1;
}

type Definition = Awaited<ReturnType<Service['executions']['definition']>>;

/** Undefined where it can't be had: what happens is shown then without the flow. */
async function definitionOf(executions: Service['executions'], id: string): Promise<Definition> {
  const execution = await executions.get(id);
  const found = await executions.definition(execution).catch(() => undefined);
  return found?.version === execution.version ? found : undefined;
}

function show({ stream, colors, live }: Output, found: Definition) {
  // What happened before is shown as of then.
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
    /** @param hasEnded - the execution; otherwise the watching alone */
    end(hasEnded: boolean) {
      clearInterval(timer);
      if (hasEnded || live) progress.finish();
    },
  };
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
