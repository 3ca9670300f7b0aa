/** The values of a config where null would do harm. */

/** A value of a config that must not be null. */
export interface NeededValue {
  readonly path: readonly (string | number)[];
  /** What null would do, for messages. */
  readonly what: string;
  /** Which expressions of the text. Default: all. */
  readonly part?: 'path-of-url' | 'before-where' | 'after-where';
  /**
   * Only null that nobody asked for is refused, such as the output of a step that may be skipped: an optional input may be null. It is
   * refused when the definition is loaded, if it is known there. Any other null is also refused when the step runs.
   */
  readonly accidentOnly?: boolean;
}

/** Whether a value is at a path, or inside the value at it. @param before - what the text has before the expression */
export function isNeeded({ path, part }: NeededValue, at: readonly (string | number)[], before: string): boolean {
  if (path.some((key, i) => key !== at[i])) return false;
  switch (part) {
    case 'path-of-url':
      return !/[?#]/.test(before);
    case 'after-where':
      return /\bwhere\b/i.test(before);
    case 'before-where':
      return !/\bwhere\b/i.test(before);
    default:
      return true;
  }
}
