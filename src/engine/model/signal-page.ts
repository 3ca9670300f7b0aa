/** The page of a signal link. */

import type { JsonObject } from '../base/json.ts';

/** What the page shows and asks. Every text is shown as it is, never as HTML. */
export interface SignalPage {
  readonly title?: string;
  readonly text?: string;
  /** The text of the button. */
  readonly confirm?: string;
  /** A JSON Schema of type `object`. Each property is a field of the form, with its `title` as label; the payload of the signal gets the values. */
  readonly fields?: JsonObject;
}

/** The states of a link that have a page. */
export type SignalPageState = 'open' | 'given' | 'answered' | 'over' | 'unknown' | 'invalid';

/** The texts of the pages, in the language of the host. What is left out is English. */
export interface SignalPageTexts {
  /** The language, such as `de`. Default `en`. */
  readonly lang?: string | undefined;
  /** The text of the button. */
  readonly confirm?: string | undefined;
  readonly states?:
    | Readonly<Partial<Record<SignalPageState, { readonly title: string; readonly text: string }>>>
    | undefined;
}
