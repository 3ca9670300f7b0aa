/** The error of an expression that can't be compiled. The definition compiler turns it into an issue with a source frame. */

/** A problem, and the characters of the compiled text that it is about. */
export class ExpressionSyntaxError extends Error {
  /** The first character of the problem, counted from 0 in the text as given. */
  readonly index: number;
  /** The number of characters of the problem; 0 at the end of the text. */
  readonly length: number;
  /** What the author probably meant, if something similar exists. */
  readonly suggestion?: string;
  /** The expression is valid, but the host does not have what it needs. The message names the option to set. */
  notConfigured = false;
  /** The problem is in a key of a map: `index` and `length` say nothing. */
  inKey = false;

  constructor(message: string, index: number, length: number, suggestion?: string) {
    super(message);
    this.name = 'ExpressionSyntaxError';
    this.index = index;
    this.length = length;
    if (suggestion !== undefined) this.suggestion = suggestion;
  }
}
