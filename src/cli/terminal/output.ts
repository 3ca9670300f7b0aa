/** The two streams of the command line: only results on stdout, all messages on stderr. */

import pc from 'picocolors';
import { forTerminal } from './text.ts';

export type Colors = ReturnType<typeof pc.createColors>;

/** The needed part of `process.stdout` and `process.stderr`. */
export interface OutputStream {
  write(text: string, done?: () => void): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** Notified before and after text of others, such as a script's `console.log`. */
export interface ForeignWriter {
  before(): void;
  after(text: string): void;
}

export interface Output {
  /** Writes a result to stdout. Like `say`, it removes control characters except colours and line ends. */
  print(text: string): void;
  /** Writes text to stdout as it is, if it is not a terminal. For a terminal, it is like `print`. */
  printRaw(text: string): void;
  /** Writes a message to stderr. */
  say(text: string): void;
  /** For stderr. */
  readonly colors: Colors;
  /** Stderr, for the live display. */
  readonly stream: OutputStream;
  /** Whether lines on stderr can be redrawn. */
  readonly live: boolean;
  /** Sends what others write to stdout to stderr, such as a script's `console.log`, so that stdout has only results. */
  capture(): void;
  /** After `capture`, this writer is notified of the text of others; with undefined, nobody is. */
  watch(writer: ForeignWriter | undefined): void;
  /** Resolves when everything is written. */
  flush(): Promise<void>;
}

interface Host {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** @param host - the process */
export function createOutput(host: Host): Output {
  const { stdout, stderr, env } = host;
  const writeOut = stdout.write.bind(stdout);
  const writeErr = stderr.write.bind(stderr);
  const terminal = stderr.isTTY === true && env.TERM !== 'dumb';
  const forced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '' && env.FORCE_COLOR !== '0';
  let watcher: ForeignWriter | undefined;
  return {
    print: (text) => void writeOut(forTerminal(text)),
    printRaw: (text) => void writeOut(stdout.isTTY === true ? forTerminal(text) : text),
    say: (text) => void writeErr(forTerminal(text)),
    colors: pc.createColors(forced || (terminal && !env.NO_COLOR)),
    stream: {
      write: writeErr,
      get isTTY() {
        return stderr.isTTY === true;
      },
      get columns() {
        return stderr.columns;
      },
      get rows() {
        return stderr.rows;
      },
    },
    live: terminal,
    capture() {
      const foreign = (...args: Parameters<OutputStream['write']>) => {
        watcher?.before();
        const kept = writeErr(...args);
        watcher?.after(String(args[0]));
        return kept;
      };
      stdout.write = foreign;
      stderr.write = foreign;
    },
    watch(writer) {
      watcher = writer;
    },
    async flush() {
      await Promise.all([writeOut, writeErr].map((write) => new Promise<void>((resolve) => write('', resolve))));
    },
  };
}
