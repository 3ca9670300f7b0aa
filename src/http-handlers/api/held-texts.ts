/** Holds back the end of the text that a model writes while it may be part of a secret: only a whole secret is found and masked. */

import type { OrchestratorEvent } from '../../engine/events/event.ts';
import type { Masking } from '../../engine/host/masking.port.ts';

/** An event of a stream, and its id there. */
interface StreamEvent {
  readonly id: string;
  readonly event: OrchestratorEvent;
}
type TextEvent = StreamEvent & { readonly event: OrchestratorEvent<'agent.delta'> };

/**
 * @returns a function that gives the events to send in place of an event: a text without its held end, or what was held before the
 *   event that ends it
 */
export function holdTexts(openFrom: Masking['openFrom']): (next: StreamEvent) => readonly StreamEvent[] {
  const held = new Map<string, TextEvent>();
  const release = (key: string): readonly StreamEvent[] => {
    const before = held.get(key);
    held.delete(key);
    return before ? [before] : [];
  };
  return (next) => {
    if (!isText(next)) {
      const { key } = next.event.data as { readonly key?: string };
      // An event without a step, such as the end of the execution, ends all texts.
      const keys = key === undefined ? [...held.keys()] : [key];
      return [...keys.flatMap(release), next];
    }
    const { key } = next.event.data;
    const text = (held.get(key)?.event.data.text ?? '') + next.event.data.text;
    const from = openFrom(text);
    held.delete(key);
    if (from < text.length) held.set(key, withText(next, text.slice(from)));
    return from > 0 ? [withText(next, text.slice(0, from))] : [];
  };
}

function isText(one: StreamEvent): one is TextEvent {
  return one.event.event === 'agent.delta';
}

function withText({ id, event }: TextEvent, text: string): TextEvent {
  return { id, event: { ...event, data: { ...event.data, text } } };
}
