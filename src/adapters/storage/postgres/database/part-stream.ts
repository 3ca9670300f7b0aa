/** Turns work that sends parts into parts that a reader takes. The work waits until its part was taken. */

interface Turn<T> {
  readonly part: T;
  resume(): void;
  stop(reason: unknown): void;
}

/**
 * @param work - sends its parts one after the other. `send` resolves when the reader asks for the next part, and rejects when the reader
 *   has stopped
 * @throws what `work` throws
 */
export async function* readSent<T>(work: (send: (part: T) => Promise<void>) => Promise<void>): AsyncGenerator<T, void> {
  const queue: { announce(turn: Turn<T> | undefined): void } = { announce() {} };
  const nextTurn = () =>
    new Promise<Turn<T> | undefined>((resolve) => {
      queue.announce = resolve;
    });
  let coming = nextTurn();
  let failure: { readonly error: unknown } | undefined;
  const done = work((part) => new Promise((resume, stop) => queue.announce({ part, resume, stop })))
    .catch((error: unknown) => {
      failure = { error };
    })
    .then(() => queue.announce(undefined));
  let turn: Turn<T> | undefined;
  try {
    for (turn = await coming; turn; turn = await coming) {
      yield turn.part;
      coming = nextTurn();
      turn.resume();
    }
  } finally {
    turn?.stop(new Error('the reader has stopped'));
    await done;
  }
  if (failure) throw failure.error;
}
