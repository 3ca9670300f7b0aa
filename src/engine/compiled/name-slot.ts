/** A name of the flow and the place of its result: the compiler assigns it, the interpreter writes and reads the result there. */

/** One name of one level, and the index of its result in the level's scope. */
export interface NameSlot {
  readonly name: string;
  readonly slot: number;
}
