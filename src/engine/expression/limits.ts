/** The bounds of the expression language. */

/** Longest expression, in characters (UTF-16 units). */
export const MAX_EXPRESSION_LENGTH = 8 * 1024;
/** Most expressions in one text. */
export const MAX_PARTS = 256;
/** Longest text or array that an expression may build. */
export const MAX_BUILT_LENGTH = 4 * 1024 * 1024;
/** Operations that suit one step: a fraction of a second of work at the very most, and enough to build the longest text. */
export const DEFAULT_BUDGET = 5_000_000;
