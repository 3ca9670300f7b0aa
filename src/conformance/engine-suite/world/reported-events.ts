/** What the processes of a world reported of one execution: to their listeners, and in its stored events. */

import type { Subject, SubjectEvent } from './subject.ts';

/** The kinds of events that are stored, without the start and the end. */
const STORED_KINDS = [
  ...['agent.completed', 'agent.failed', 'agent.retrying', 'agent.skipped', 'foreach.started', 'step.waiting'],
  ...['step.continued', 'signal.taken', 'child.started', 'child.ended', 'run.resumed'],
  'send.completed',
];

/** Events of one execution, as texts. */
export interface Listener {
  received(id: string): readonly string[];
}

export function listen(subject: Subject): Listener {
  const all: SubjectEvent[] = [];
  for (const kind of STORED_KINDS) subject.on(kind, (event) => all.push(event));
  return {
    received: (id) => all.filter(({ data }) => (data as { executionId?: string }).executionId === id).map(textOf),
  };
}

/** Reads the stored events of an execution. @throws Error when their ids do not grow */
export async function readStored(subject: Subject, id: string): Promise<readonly SubjectEvent[]> {
  const events: SubjectEvent[] = [];
  let last = 0;
  for await (const { id: number, event } of subject.executions.events(id)) {
    if (Number(number) <= last) throw new Error(`event ${number} of ${id} follows event ${last}`);
    last = Number(number);
    events.push(event);
  }
  return events;
}

/**
 * Compares what a listener received of an execution with the stored events.
 * @param isWhole - the listener received the whole execution: then there are no other stored events
 * @throws Error when a listener received something twice, or something that is not stored
 */
export function compareReports(received: readonly string[], stored: readonly SubjectEvent[], isWhole: boolean): void {
  const reported = stored.map(textOf).filter((text) => STORED_KINDS.some((kind) => text.startsWith(`${kind} `)));
  const twice =
    received.find((text, i) => received.indexOf(text) !== i) ??
    reported.find((text, i) => reported.indexOf(text) !== i);
  if (twice !== undefined) throw new Error(`reported twice: ${twice}`);
  const notStored = received.find((text) => !reported.includes(text));
  if (notStored !== undefined) throw new Error(`received, but not stored: ${notStored}`);
  const notHeard = isWhole ? reported.find((text) => !received.includes(text)) : undefined;
  if (notHeard !== undefined) throw new Error(`stored, but not received: ${notHeard}`);
}

function textOf({ event, data }: SubjectEvent): string {
  return `${event} ${JSON.stringify(data)}`;
}
