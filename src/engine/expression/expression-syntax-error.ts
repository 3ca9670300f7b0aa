/** The error of an expression that can't be compiled; the definition's parser turns it into an issue with a source frame. */

/** Says what is wrong at which characters of the text that was given to compile. */
export class ExpressionSyntaxError extends Error {
  /** First character concerned, from 0, in the text as given. */
  readonly index: number;
  /** How many characters are concerned; 0 at the end of the text. */
  readonly length: number;
  /** What was meant, if something is near. */
  readonly suggestion?: string;
  /** The expression is right and the host lacks something: the message names the option to set. */
  notConfigured = false;

  constructor(message: string, index: number, length: number, suggestion?: string) {
    super(message);
    this.name = 'ExpressionSyntaxError';
    this.index = index;
    this.length = length;
    if (suggestion !== undefined) this.suggestion = suggestion;
  }
}
