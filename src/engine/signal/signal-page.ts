/** The page of a signal link. */

import type { JsonObject } from '../base/json/json.ts';

/** What a person is asked for a signal, as its `wait` says it. Every text is shown as it is, never as HTML. */
export interface SignalForm {
  readonly title?: string;
  readonly text?: string;
  /** A JSON Schema of type `object`. Each property is a field of the form, with its `title` as label; the payload of the signal gets the values. */
  readonly fields?: JsonObject;
}

/** What the page of a link shows and asks: the form of the signal, and what the link sets in it. */
export interface SignalPage extends SignalForm {
  /** The text of the button. */
  readonly confirm?: string;
}

export const SIGNAL_LINK_STATES = ['open', 'given', 'answered', 'over', 'unknown', 'invalid'] as const;

/**
 * The state of a link:
 *
 * | state | meaning |
 * |---|---|
 * | open | it can be used |
 * | given | this call has sent its signal |
 * | answered | it was used before, or another link of the same step for the same signal was used |
 * | over | its execution has ended, or the wait after the step that created it has |
 * | invalid | the values of its fields don't fit; nothing was sent |
 * | unknown | it is not a link of this orchestrator: it was changed, cut off, or signed with a secret that is not listed any more |
 */
export type SignalLinkState = (typeof SIGNAL_LINK_STATES)[number];

/** The texts of the pages, in the language of the host. What is left out is English. */
export interface SignalPageTexts {
  /** The language, such as `de`. Default `en`. */
  readonly lang?: string | undefined;
  /** The text of the button. */
  readonly confirm?: string | undefined;
  readonly states?:
    | Readonly<Partial<Record<SignalLinkState, { readonly title: string; readonly text: string }>>>
    | undefined;
}
