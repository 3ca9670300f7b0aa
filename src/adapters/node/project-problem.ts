/** What is wrong with one file of a project folder, apart from the definitions. */

export interface ProjectProblem {
  /** Relative to the project folder, with `/`. */
  readonly file: string;
  readonly message: string;
}
