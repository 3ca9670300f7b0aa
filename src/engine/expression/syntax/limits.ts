/** The limits of the expression language. */

/** The longest expression, in characters (UTF-16 units). */
export const MAX_EXPRESSION_LENGTH = 8 * 1024;
/** The maximum number of expressions in one text. */
export const MAX_PARTS = 256;
/** The longest text or array that an expression may build. */
export const MAX_BUILT_LENGTH = 4 * 1024 * 1024;
/** The operations of one step: at most a fraction of a second of work, but enough to build the longest text. */
export const DEFAULT_BUDGET = 5_000_000;
/** Operations for each visited key of an object. */
export const KEY_COST = 8;
/** Operations for each value that is read from JSON text, in addition to its characters. */
export const VALUE_COST = 4;
