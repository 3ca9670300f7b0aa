/** Threads that render PDFs: they keep the host's thread free, and end a document that takes too much time or memory. */

import type { Worker } from 'node:worker_threads';
import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { PdfDocument } from '../../engine/ports/pdf.ts';
import type { ThreadData, ThreadJob, ThreadMessage } from './thread-messages.ts';

interface ThreadOptions {
  readonly threads: number;
  readonly memoryBytes: number;
  readonly data: ThreadData;
}

interface Task {
  readonly job: ThreadJob;
  /** Settles the call, once. */
  resolve(document: PdfDocument): void;
  reject(reason: unknown): void;
  isSettled: boolean;
  /** The thread that works on it. */
  thread?: Worker;
}

interface Pool extends ThreadOptions {
  waiting: Task[];
  readonly idle: Worker[];
  readonly all: Set<Worker>;
  /** Threads, and those that start. */
  count: number;
}

export interface PdfThreads {
  /** Renders in one of the threads, which start when they are needed. The time includes the wait for a thread. */
  render(job: ThreadJob, limits: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<PdfDocument>;
  close(): Promise<void>;
}

const MIB = 1024 * 1024;

const importModule = (name: string) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

export function createPdfThreads(options: ThreadOptions): PdfThreads {
  const pool: Pool = { ...options, waiting: [], idle: [], all: new Set(), count: 0 };
  return {
    render: (job, { timeoutMs, signal }) =>
      new Promise((resolve, reject) => {
        const settle = (then: () => void) => {
          if (task.isSettled) return;
          task.isSettled = true;
          clearTimeout(timer);
          signal.removeEventListener('abort', onAbort);
          then();
        };
        const task: Task = {
          job,
          isSettled: false,
          resolve: (document) => settle(() => resolve(document)),
          reject: (reason) => settle(() => reject(reason)),
        };
        const stop = (reason: unknown) => {
          task.reject(reason);
          pool.waiting = pool.waiting.filter((other) => other !== task);
          if (task.thread) drop(pool, task.thread);
        };
        const onAbort = () => stop(signal.reason);
        const timer = setTimeout(() => stop(tooLong(timeoutMs)), timeoutMs);
        signal.addEventListener('abort', onAbort);
        pool.waiting.push(task);
        next(pool);
      }),
    async close() {
      for (const task of pool.waiting.splice(0)) task.reject(failed('was closed'));
      await Promise.all([...pool.all].map((thread) => thread.terminate()));
    },
  };
}

/** Gives the first waiting task to a thread, if one is idle or may start. */
function next(pool: Pool): void {
  if (pool.waiting.length === 0) return;
  const idle = pool.idle.pop();
  if (idle) {
    work(pool, idle, pool.waiting.shift() as Task);
    return;
  }
  if (pool.count >= pool.threads) return;
  pool.count += 1;
  const task = pool.waiting.shift() as Task;
  startThread(pool).then(
    (thread) => {
      if (!task.isSettled) work(pool, thread, task);
      else release(pool, thread);
    },
    (cause) => {
      pool.count -= 1;
      task.reject(cause);
      next(pool);
    },
  );
}

function release(pool: Pool, thread: Worker): void {
  // An idle thread does not keep the process alive.
  thread.unref();
  listen(thread, { onMessage() {}, onEnd: () => drop(pool, thread) });
  pool.idle.push(thread);
  next(pool);
}

function drop(pool: Pool, thread: Worker): void {
  if (!pool.all.delete(thread)) return;
  pool.count -= 1;
  const index = pool.idle.indexOf(thread);
  if (index !== -1) pool.idle.splice(index, 1);
  listen(thread, { onMessage() {}, onEnd() {} });
  void thread.terminate();
  next(pool);
}

async function startThread(pool: Pool): Promise<Worker> {
  const thread = await createThread(pool);
  const message = await new Promise<ThreadMessage>((resolve, reject) => {
    listen(thread, { onMessage: resolve, onEnd: (error) => reject(noThread(error)) });
  });
  if ('missing' in message) {
    listen(thread, { onMessage() {}, onEnd() {} });
    void thread.terminate();
    throw new OrchestratorError('NOT_CONFIGURED', message.missing);
  }
  pool.all.add(thread);
  return thread;
}

async function createThread({ data, memoryBytes }: Pool): Promise<Worker> {
  try {
    const { Worker } = (await importModule('node:worker_threads')) as typeof import('node:worker_threads');
    return new Worker(new URL('./pdf-thread.js', import.meta.url), {
      workerData: data,
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(memoryBytes / MIB) },
    });
  } catch (cause) {
    throw noThread(cause);
  }
}

function noThread(cause: unknown): OrchestratorError {
  const message = `embeddedPdf: no thread can be started here (${messageOf(cause)}); on Workers, use cloudflarePdf(). A bundler must keep \`pdf-thread.js\` of this package next to the bundle, or leave this package out of it`;
  return new OrchestratorError('NOT_CONFIGURED', message, { cause });
}

interface Listeners {
  onMessage(message: ThreadMessage): void;
  onEnd(error: unknown): void;
}

/** Replaces the listeners of a thread. */
function listen(thread: Worker, { onMessage, onEnd }: Listeners): void {
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
  thread.on('message', onMessage);
  thread.on('error', onEnd);
  thread.on('exit', () => onEnd(new Error('the thread ended')));
}

function work(pool: Pool, thread: Worker, task: Task): void {
  task.thread = thread;
  listen(thread, {
    onMessage(message) {
      delete task.thread;
      release(pool, thread);
      if ('content' in message) task.resolve(message);
      else if ('refused' in message) task.reject(refused(message.refused));
      else if ('failed' in message) task.reject(failed(`failed: ${message.failed}`));
    },
    onEnd(error) {
      const isFull = (error as { code?: unknown } | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY';
      const limit = `it needs more than ${pool.memoryBytes} bytes of memory; split it, or raise \`memoryBytes\` of embeddedPdf`;
      task.reject(isFull ? refused(limit) : failed(`ended: ${messageOf(error)}`));
      drop(pool, thread);
    },
  });
  thread.ref();
  thread.postMessage(task.job);
}

function refused(why: string): OrchestratorError {
  return new OrchestratorError('INVALID_INPUT', `this HTML can't be rendered: ${why}`);
}

function failed(how: string): OrchestratorError {
  return new OrchestratorError('AGENT_FAILED', `embeddedPdf: the renderer ${how}`, { retryable: true });
}

function tooLong(timeoutMs: number): OrchestratorError {
  const message = `embeddedPdf: the document was not rendered within ${timeoutMs} ms; split it, or raise \`timeout\``;
  return new OrchestratorError('TIMEOUT', message, { details: { timeoutMs }, retryable: true });
}
