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

/** Whether a path leads to the value, or into it. */
export function isAt({ path }: NeededValue, at: readonly (string | number)[]): boolean {
  return path.every((key, i) => key === at[i]);
}

/** Whether an expression is in the needed part of its text. @param before - what the text has before the expression */
export function isInPart({ part }: NeededValue, before: string): boolean {
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
