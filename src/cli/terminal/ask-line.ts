/** Asks a person for lines of text in a terminal. */

import { createInterface, type Interface } from 'node:readline';

export interface Asker {
  /** The next line; undefined at the end of the input, and when the signal aborts. */
  ask(signal: AbortSignal): Promise<string | undefined>;
  close(): void;
}

/** Reads nothing before the first question. The terminal itself edits the line, so Ctrl-C stays a signal of the process. */
export function createAsker(input: NodeJS.ReadableStream): Asker {
  const lines: string[] = [];
  let reader: Interface | undefined;
  let isOver = false;
  let wake: () => void = () => {};
  const open = () => {
    reader ??= createInterface({ input, terminal: false })
      .on('line', (line) => {
        lines.push(line);
        wake();
      })
      .on('close', () => {
        isOver = true;
        wake();
      });
  };
  return {
    async ask(signal) {
      open();
      signal.addEventListener('abort', () => wake());
      while (lines.length === 0 && !isOver && !signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return signal.aborted ? undefined : lines.shift();
    },
    close: () => reader?.close(),
  };
}
