/** The command line's two streams: results alone on stdout, everything said about them on stderr. */

import pc from 'picocolors';
import { forTerminal } from './text.ts';

export type Colors = ReturnType<typeof pc.createColors>;

/** What is asked of a stream; `process.stdout` and `process.stderr` fit. */
export interface OutputStream {
  write(text: string, done?: () => void): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** Told around text that somebody else writes: a script's `console.log`. */
export interface ForeignWriter {
  before(): void;
  after(text: string): void;
}

export interface Output {
  /** Writes a result to stdout. What a terminal would obey is taken out, but for colours and line ends; so it is of `say`. */
  print(text: string): void;
  /** Writes to stderr. */
  say(text: string): void;
  /** For stderr. */
  readonly colors: Colors;
  /** Stderr, for those who draw on it. */
  readonly stream: OutputStream;
  /** Whether lines on stderr may be drawn anew. */
  readonly live: boolean;
  /**
   * Until the returned function is called, sends what others write to stdout to stderr, so that stdout holds the result alone,
   * and tells `writer` about all of it.
   */
  capture(): { watch(writer: ForeignWriter | undefined): void; release(): void };
  /** Resolves when all is written. */
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
  return {
    print: (text) => void writeOut(forTerminal(text)),
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
      let watcher: ForeignWriter | undefined;
      const foreign = (...args: Parameters<OutputStream['write']>) => {
        watcher?.before();
        const kept = writeErr(...args);
        watcher?.after(String(args[0]));
        return kept;
      };
      const originals = [stdout.write, stderr.write] as const;
      stdout.write = foreign;
      stderr.write = foreign;
      return {
        watch: (writer) => {
          watcher = writer;
        },
        release() {
          [stdout.write, stderr.write] = originals;
        },
      };
    },
    async flush() {
      await Promise.all([writeOut, writeErr].map((write) => new Promise<void>((resolve) => write('', resolve))));
    },
  };
}
