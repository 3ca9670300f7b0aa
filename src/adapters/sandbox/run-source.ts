/** Runs the text of a script once, in a QuickJS machine of its own, until it has ended or met a limit. */

import type { JSValueHandle, QuickJS } from 'quickjs-wasi';
import { messageOf } from '../../engine/base/errors.ts';
import { GUEST_PROGRAM, type GuestReply, MAX_LINES, MAX_REPLY_CHARS } from './guest-program.ts';
import type { LoadedQuickJs } from './load-quickjs.ts';

/** One call of a script. Plain data, because it may cross to another thread. */
export interface Job {
  /** Names the script in messages and stacks. */
  readonly name: string;
  readonly source: string;
  /** JSON text of what the script receives. Without it, the text is only compiled. */
  readonly context?: string;
  readonly limits: Limits;
}

/** The limits of each call. */
export interface Limits {
  readonly timeoutMs: number;
  readonly memoryBytes: number;
  readonly stackBytes: number;
}

/** A line that a script logged. */
export interface GuestLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  /** JSON text of an object. */
  readonly fields: string;
  readonly message: string;
}

/** How a call ended. Plain data, because it may come from another thread. */
export type Answer =
  | GuestReply
  | { readonly kind: 'compiled' }
  | { readonly kind: 'syntax'; readonly message: string; readonly line?: number; readonly column?: number }
  | { readonly kind: 'time' | 'memory' | 'unsettled' }
  /** The machine itself failed, as it does for texts and values that are nested thousands of levels deep. */
  | { readonly kind: 'broken'; readonly message: string };

const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'];
// workerd stops its clock while code runs. There, this many calls of the handler count as 1 ms; QuickJS makes 5 to 50 of them.
const CALLS_PER_MS = 50;

/** @param onLine - called for each line, while the script runs */
export async function runSource(
  { quickjs, wasm }: LoadedQuickJs,
  job: Job,
  onLine: (line: GuestLine) => void,
): Promise<Answer> {
  const { timeoutMs, memoryBytes, stackBytes } = job.limits;
  const state: State = { expired: false, lines: 0 };
  let began = 0;
  let calls = 0;
  // The machine is never disposed of: its memory is its own and goes with it, also after a failure that leaves it inconsistent.
  const machine = await quickjs.QuickJS.create({
    wasm,
    memoryLimit: memoryBytes,
    maxStackSize: stackBytes,
    timezoneOffset: 0,
    interruptHandler: () => {
      calls += 1;
      const spent = performance.now() - began;
      if (spent > timeoutMs || (spent === 0 && calls > timeoutMs * CALLS_PER_MS)) state.expired = true;
      return state.expired;
    },
  });
  began = performance.now();
  try {
    return job.context === undefined
      ? compile(machine, quickjs.EvalFlags, job)
      : call(machine, quickjs.EvalFlags, job, job.context, state, onLine);
  } catch (thrown) {
    if (state.expired) return { kind: 'time' };
    return /out of memory/.test(messageOf(thrown))
      ? { kind: 'memory' }
      : { kind: 'broken', message: messageOf(thrown) };
  }
}

interface State {
  expired: boolean;
  lines: number;
  reply?: string;
}

type Flags = LoadedQuickJs['quickjs']['EvalFlags'];

function compile(machine: QuickJS, flags: Flags, { source, name }: Job): Answer {
  try {
    machine.evalCode(source, name, flags.TYPE_MODULE | flags.COMPILE_ONLY);
    return { kind: 'compiled' };
  } catch (thrown) {
    return syntaxProblem(thrown, name);
  }
}

function call(
  machine: QuickJS,
  flags: Flags,
  { source, name, limits: { memoryBytes } }: Job,
  context: string,
  state: State,
  onLine: (line: GuestLine) => void,
): Answer {
  const log = machine.newFunction('log', (level, fields, message) => {
    logLine(state, { level: textOf(level), fields: textOf(fields), message: textOf(message) }, onLine);
    return machine.undefined;
  });
  const reply = machine.newFunction('reply', (text) => {
    state.reply = textOf(text);
    return machine.undefined;
  });
  const prepare = machine.evalCode(GUEST_PROGRAM, 'sandbox');
  const start = machine.callFunction(prepare, machine.undefined, log);
  let loading: JSValueHandle;
  try {
    loading = machine.evalCode(source, name, flags.TYPE_MODULE);
  } catch (thrown) {
    if (state.expired) return { kind: 'time' };
    return syntaxProblem(thrown, name);
  }
  const done = machine.callFunction(start, machine.undefined, loading, machine.newString(context), reply);
  machine.executePendingJobs();
  if (state.expired) return { kind: 'time' };
  if (state.reply !== undefined) return readReply(state.reply, machine, memoryBytes);
  // The program catches everything but a lack of memory.
  return { kind: done.promiseState === PENDING ? 'unsettled' : 'memory' };
}

const PENDING = 0;

// A machine without memory throws this error, or null if it can't create the error. The memory of a machine never shrinks.
function readReply(text: string, machine: QuickJS, memoryBytes: number): Answer {
  const reply = JSON.parse(text) as GuestReply;
  if (reply.kind !== 'thrown') return reply;
  if (reply.name === 'InternalError' && reply.message === 'out of memory') return { kind: 'memory' };
  const wasFull = machine._getMemory().buffer.byteLength > memoryBytes / 2;
  return wasFull && reply.message === 'null' ? { kind: 'memory' } : reply;
}

function textOf(handle: JSValueHandle | undefined): string {
  return handle?.isString ? handle.toString().slice(0, MAX_REPLY_CHARS + 1) : '';
}

function logLine(
  state: State,
  line: Readonly<Record<keyof GuestLine, string>>,
  onLine: (line: GuestLine) => void,
): void {
  state.lines += 1;
  if (state.lines < MAX_LINES && LEVELS.includes(line.level)) onLine(line as GuestLine);
  else if (state.lines === MAX_LINES)
    onLine({ level: 'warn', fields: '{}', message: 'the script logs too much; its further lines are dropped' });
}

// The stack of a syntax error names the place: `at script:3:9`. Before a text runs, the only other error is that of an import.
function syntaxProblem(thrown: unknown, name: string): Answer {
  const { name: kind, message, stack } = thrown as { name?: unknown; message?: unknown; stack?: unknown };
  if (kind === 'ReferenceError') return { kind: 'syntax', message: 'imports are not available in the sandbox' };
  if (kind !== 'SyntaxError') throw thrown;
  const at = String(stack)
    .split(`${name}:`)[1]
    ?.match(/^(\d+)(?::(\d+))?/);
  return {
    kind: 'syntax',
    message: String(message).slice(0, 300),
    ...(at?.[1] !== undefined && { line: Number(at[1]) }),
    ...(at?.[2] !== undefined && { column: Number(at[2]) }),
  };
}
