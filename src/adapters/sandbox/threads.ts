/** Threads that run sandboxed scripts: they keep the host's thread free, and end a script that nothing else can stop. */

import type { Worker } from 'node:worker_threads';
import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { Answer, GuestLine, Job } from './run-source.ts';

/** What a thread posts: that QuickJS is loaded, or why not; a line of its job, and the end of its job. */
export type ThreadMessage =
  | { readonly ready: true }
  | { readonly failed: string }
  | { readonly line: GuestLine }
  | { readonly answer: Answer };

interface Task {
  readonly job: Job;
  readonly onLine: (line: GuestLine) => void;
  readonly signal?: AbortSignal;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: unknown) => void;
}

interface Pool {
  readonly threads: number;
  readonly waiting: Task[];
  readonly idle: Worker[];
  started: number;
}

/** What a script may exceed its time by, before its thread ends: the machine needs a moment to stop, and a slow computer a longer one. */
const GRACE_MS = 500;

const importModule = (name: string) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

/** @returns the function that runs a job in one of the threads, which start when they are needed */
export function createThreads(threads: number) {
  const pool: Pool = { threads, waiting: [], idle: [], started: 0 };
  return (job: Job, onLine: (line: GuestLine) => void, signal?: AbortSignal): Promise<Answer> =>
    new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      pool.waiting.push({ job, onLine, signal, resolve, reject });
      next(pool);
    });
}

// Gives the first waiting task to a thread, if one is idle or may start.
function next(pool: Pool): void {
  if (pool.idle.length === 0 && pool.started >= pool.threads) return;
  const task = pool.waiting.shift();
  if (task === undefined) return;
  if (task.signal?.aborted) {
    next(pool);
    return;
  }
  const idle = pool.idle.pop();
  if (idle !== undefined) {
    work(pool, idle, task);
    return;
  }
  pool.started += 1;
  startThread().then(
    (thread) => work(pool, thread, task),
    (cause) => {
      pool.started -= 1;
      task.reject(noThread(cause));
      next(pool);
    },
  );
}

async function startThread(): Promise<Worker> {
  const { Worker } = (await importModule('node:worker_threads')) as typeof import('node:worker_threads');
  const thread = new Worker(new URL('./sandbox-thread.js', import.meta.url), { env: {}, execArgv: [] });
  const message = await new Promise<ThreadMessage>((resolve, reject) => {
    listen(thread, { onMessage: resolve, onEnd: (why) => reject(new Error(why)) });
  });
  listen(thread, { onMessage() {}, onEnd() {} });
  if ('failed' in message) throw new OrchestratorError('NOT_CONFIGURED', message.failed);
  // An idle thread does not keep the process alive.
  thread.unref();
  return thread;
}

interface Listeners {
  onMessage(message: ThreadMessage): void;
  onEnd(why: string): void;
}

/** Replaces the listeners of a thread. After that the thread keeps the process alive, because Node.js calls `ref` for a listener. */
function listen(thread: Worker, { onMessage, onEnd }: Listeners): void {
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
  thread.on('message', onMessage);
  thread.on('error', (error) => onEnd(messageOf(error)));
  thread.on('exit', () => onEnd('the thread ended'));
}

function work(pool: Pool, thread: Worker, task: Task): void {
  const { job, onLine, signal } = task;
  if (signal?.aborted) {
    pool.idle.push(thread);
    next(pool);
    return;
  }
  const end = (isReusable: boolean, settle: () => void) => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    // What an idle or ended thread still reports is of no interest, and must not reach the process as an uncaught error.
    listen(thread, { onMessage() {}, onEnd: () => forget(pool, thread) });
    thread.unref();
    if (isReusable) pool.idle.push(thread);
    else {
      pool.started -= 1;
      void thread.terminate();
    }
    settle();
    next(pool);
  };
  const onAbort = () => end(false, () => {});
  const timer = setTimeout(() => end(false, () => task.resolve({ kind: 'time' })), job.limits.timeoutMs + GRACE_MS);
  signal?.addEventListener('abort', onAbort, { once: true });
  listen(thread, {
    onMessage(message) {
      if ('line' in message) onLine(message.line);
      else if ('answer' in message) end(true, () => task.resolve(message.answer));
    },
    onEnd: (why) => end(false, () => task.resolve({ kind: 'broken', message: why })),
  });
  thread.ref();
  thread.postMessage(job);
}

function forget(pool: Pool, thread: Worker): void {
  const index = pool.idle.indexOf(thread);
  if (index === -1) return;
  pool.idle.splice(index, 1);
  pool.started -= 1;
}

function noThread(cause: unknown): OrchestratorError {
  if (cause instanceof OrchestratorError) return cause;
  const message = `sandbox: no thread can be started here (${messageOf(cause)}); use \`sandbox({ threads: 0 })\`, on Workers with \`wasm\` (\`import wasm from 'quickjs-wasi/quickjs.wasm'\`)`;
  return new OrchestratorError('NOT_CONFIGURED', message, { cause });
}
