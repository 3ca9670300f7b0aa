/** Keeps the syntax trees of the expressions of one definition, until its types are checked. */

import type { Node } from './ast.ts';

export interface ParsedPart {
  readonly start: number;
  readonly end: number;
  readonly root: Node;
}

export class ParsedExpressions {
  readonly #texts = new Map<string, ParsedPart[]>();

  add(text: string, part: ParsedPart): void {
    const parts = this.#texts.get(text);
    if (!parts) this.#texts.set(text, [part]);
    else if (!parts.some(({ start }) => start === part.start)) parts.push(part);
  }

  find(text: string, start: number): ParsedPart | undefined {
    return this.#texts.get(text)?.find((part) => part.start === start);
  }

  /** All expressions of texts that contain a word. */
  *withWord(word: string): Iterable<ParsedPart> {
    for (const [text, parts] of this.#texts) if (text.includes(word)) yield* parts;
  }

  /** The expressions of a text, in their order. */
  all(text: string): readonly ParsedPart[] {
    return this.#texts.get(text) ?? [];
  }
}
