/** What the embedded renderer and its threads send each other. */

import type { PdfRequest } from '../../engine/operation/pdf.port.ts';

/** The files of one font family, in a format that fontkit reads: TTF, OTF, WOFF or WOFF2. A style that is missing looks like `normal`. */
export interface FontFiles {
  readonly normal: Uint8Array;
  readonly bold?: Uint8Array;
  readonly italics?: Uint8Array;
  readonly bolditalics?: Uint8Array;
}

/** What a thread gets when it starts. */
export interface ThreadData {
  readonly fonts: Readonly<Record<string, FontFiles>>;
  /** In place of a character that no font has. Without it, such a document is refused. */
  readonly missingCharacter: string | undefined;
}

/** One document. */
export type ThreadJob = Pick<PdfRequest, 'html' | 'pageSize' | 'margin' | 'pageNumbers' | 'maxPages'>;

/** What a thread posts: that its packages are loaded, or which of them is missing; a document, or why there is none. */
export type ThreadMessage =
  | { readonly ready: true }
  | { readonly missing: string }
  | { readonly content: Uint8Array; readonly pages: number }
  /** The HTML can't be rendered. */
  | { readonly refused: string }
  /** The renderer met an error of its own. */
  | { readonly failed: string };

/** Why HTML can't be rendered, for who wrote it. */
export class RefusedHtml extends Error {}
