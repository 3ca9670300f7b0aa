/** The bounds of the expression language. */

/** Longest expression, in characters (UTF-16 units). */
export const MAX_EXPRESSION_LENGTH = 8 * 1024;
/** Most expressions in one text. */
export const MAX_PARTS = 256;
/** Longest text or array that an expression may build. */
export const MAX_BUILT_LENGTH = 4 * 1024 * 1024;
/** Operations that suit one step: a fraction of a second of work at the very most, and enough to build the longest text. */
export const DEFAULT_BUDGET = 5_000_000;
/** Operations for each key of an object that is walked. */
export const KEY_COST = 8;
/** Operations for each value that is read from JSON text, beside its characters. */
export const VALUE_COST = 4;
