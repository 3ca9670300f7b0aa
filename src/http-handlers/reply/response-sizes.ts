/** About how many bytes responses have at most. */

/** The most bytes of a page of steps, of a record or an output as most are, and of a listing. */
export const PAGE_BYTES = 8 * 1024 * 1024;
export const VALUE_BYTES = 4 * 1024 * 1024;
export const LIST_BYTES = 2 * 1024 * 1024;
