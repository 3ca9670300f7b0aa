/** Remembers which parts of a definition were wrong and left out, so that nothing is reported that only follows from it. */

import type { Path } from './problem.ts';

export interface DroppedParts {
  readonly size: number;
  /** @param path - in the source */
  add(path: Path): void;
  /** Whether the part at a path, or one around it, was left out. */
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
