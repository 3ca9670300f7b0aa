/** Stores which wrong parts of a definition were left out, so that problems that only follow from them are not reported. */

import type { Path } from '../source/problem.ts';

export interface DroppedParts {
  readonly size: number;
  /** @param path - a path in the source */
  add(path: Path): void;
  /** Whether the part at a path, or a part around it, was left out. */
  has(path: Path): boolean;
}

export function createDroppedParts(): DroppedParts {
  const keys = new Set<string>();
  return {
    get size() {
      return keys.size;
    },
    add: (path) => void keys.add(JSON.stringify(path)),
    has(path) {
      if (keys.size === 0) return false;
      for (let length = path.length; length > 0; length--) {
        if (keys.has(JSON.stringify(path.slice(0, length)))) return true;
      }
      return false;
    },
  };
}
