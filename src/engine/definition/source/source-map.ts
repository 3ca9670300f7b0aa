/** Finds the place of a definition's value in the source text. */

import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair } from 'yaml';
import { type ScalarStyle, scalarSourceOffset } from './scalar-offset.ts';
import type { Place, SourceLines } from './source-frame.ts';

/** Finds the place of a value in the text that it was read from. */
export interface SourceMap {
  /**
   * The place where the value at a path starts, or the place of its nearest ancestor when the path doesn't exist.
   *
   * @param path - keys and indexes from the root
   * @param options - `key`: the place of the key instead of the value; `offset`: UTF-16 units into a string value, so
   *   that a problem inside an expression has the right column
   * @returns line and column counted from 1, or undefined when the source is not known
   */
  locate(
    path: readonly (string | number)[],
    options?: { readonly key?: boolean; readonly offset?: number },
  ): Place | undefined;
  /**
   * The lines up to a place, with a marker under it.
   *
   * @param line - counted from 1
   * @param column - counted from 1
   * @param length - the number of characters to mark, default 1. The marker ends with the line
   */
  frame(line: number, column: number, length?: number): string;
}

/** The parts of a read document that a map needs. */
export interface MappedDocument {
  readonly text: string;
  readonly lines: SourceLines;
  readonly root: Node | null;
  /** The node that each alias refers to. */
  readonly aliases: ReadonlyMap<Alias, Node>;
  /** The text of a key, as the data has it. */
  readonly keyText: (key: Node) => string;
}

/** Creates the map of one read document. */
export function createSourceMap(document: MappedDocument): SourceMap {
  return {
    locate(path, options = {}) {
      const found = find(document, path);
      if (!found) return undefined;
      const { node, key, complete } = found;
      if (options.key && complete && key?.range) return document.lines.place(key.range[0]);
      const target = isAlias(node) && options.offset !== undefined ? document.aliases.get(node) : node;
      const start = target?.range?.[0];
      if (start === undefined) return undefined;
      const inside = complete && options.offset !== undefined ? offsetInside(document, target, options.offset) : 0;
      return document.lines.place(start + inside);
    },
    frame: (line, column, length) => document.lines.frame(line, column, length),
  };
}

interface Found {
  readonly node: Node;
  readonly key: Node | undefined;
  /** Whether this is the value at the whole path, not an ancestor. */
  readonly complete: boolean;
}

function find(document: MappedDocument, path: readonly (string | number)[]): Found | undefined {
  if (!document.root) return undefined;
  let node: Node = document.root;
  let key: Node | undefined;
  for (const part of path) {
    const holder: Node | undefined = isAlias(node) ? document.aliases.get(node) : node;
    let next: Node | null | undefined;
    let nextKey: Node | undefined;
    if (isMap(holder)) {
      const pairs = holder.items as Pair<Node, Node | null>[];
      const pair = pairs.find((item) => document.keyText(item.key) === String(part));
      nextKey = pair?.key;
      // For a key without a value (`? key`, `{ key }`) the place of the key is used.
      next = pair && (pair.value ?? pair.key);
    } else if (isSeq(holder)) {
      next = holder.items[Number(part)] as Node | undefined;
    }
    if (!next) return { node, key, complete: false };
    node = next;
    key = nextKey;
  }
  return { node, key, complete: true };
}

function offsetInside(document: MappedDocument, node: Node | undefined, offset: number): number {
  if (!isScalar(node) || typeof node.value !== 'string' || !node.range || !node.type) return 0;
  const source = document.text.slice(node.range[0], node.range[1]);
  return scalarSourceOffset(node.type as ScalarStyle, source, node.value, offset);
}
