/** Threads that work on jobs, one after the other: they keep the host's thread free, and end a job that nothing else can stop. */

import type { Worker, WorkerOptions } from 'node:worker_threads';

interface PoolOptions<Message> {
  /** The largest number of threads, which start when they are needed. */
  readonly threads: number;
  readonly program: URL;
  readonly options: WorkerOptions;
  /** What the first message of a thread says is missing; undefined: the thread is ready. */
  missing(first: Message): string | undefined;
  /** The error for a thread that can't start. @param missing - what its first message says */
  noThread(cause: unknown, missing: string | undefined): Error;
}

interface JobOptions<Message> {
  /** The longest time, in ms. Then the thread ends. */
  readonly timeoutMs: number;
  /** Whether the time begins with the call, and not with the work. */
  readonly countsWait: boolean;
  readonly signal?: AbortSignal | undefined;
  /** @returns whether the message is the last one of the job */
  onMessage(message: Message): boolean;
}

/** How a job ended: with its last message, because it took too long, or because its thread ended. */
export type JobEnd<Message> =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'time' }
  | { readonly kind: 'ended'; readonly error: unknown };

export interface ThreadPool<Job, Message> {
  /** Rejects with the reason of the signal, with the error of a thread that can't start, and when the pool is closed. */
  run(job: Job, options: JobOptions<Message>): Promise<JobEnd<Message>>;
  /** @param reason - rejects the jobs that wait */
  close(reason: Error): Promise<void>;
}

interface Task<Job, Message> extends Pick<JobOptions<Message>, 'onMessage'> {
  readonly job: Job;
  isSettled: boolean;
  /** The thread that works on it. */
  thread?: Worker;
  startTimer(): void;
  /** Settles the call, once. */
  end(how: JobEnd<Message>): void;
  reject(reason: unknown): void;
}

interface Pool<Job, Message> extends PoolOptions<Message> {
  waiting: Task<Job, Message>[];
  readonly idle: Worker[];
  readonly all: Set<Worker>;
  /** Threads, and those that start. */
  count: number;
}

const importModule = (name: string) => import(/* @vite-ignore */ /* webpackIgnore: true */ name);

export function createThreadPool<Job, Message>(options: PoolOptions<Message>): ThreadPool<Job, Message> {
  const pool: Pool<Job, Message> = { ...options, waiting: [], idle: [], all: new Set(), count: 0 };
  return {
    run: (job, { timeoutMs, countsWait, signal, onMessage }) =>
      new Promise((resolve, reject) => {
        let timer: ReturnType<typeof setTimeout> | undefined;
        const settle = (then: () => void) => {
          if (task.isSettled) return;
          task.isSettled = true;
          clearTimeout(timer);
          signal?.removeEventListener('abort', onAbort);
          then();
        };
        const task: Task<Job, Message> = {
          ...{ job, onMessage, isSettled: false },
          startTimer() {
            timer ??= setTimeout(() => stop(() => resolve({ kind: 'time' })), timeoutMs);
          },
          end: (how) => settle(() => resolve(how)),
          reject: (reason) => settle(() => reject(reason)),
        };
        const stop = (then: () => void) => {
          settle(then);
          pool.waiting = pool.waiting.filter((other) => other !== task);
          if (task.thread) drop(pool, task.thread);
        };
        const onAbort = () => stop(() => reject(signal?.reason));
        if (countsWait) task.startTimer();
        signal?.addEventListener('abort', onAbort);
        pool.waiting.push(task);
        next(pool);
      }),
    async close(reason) {
      for (const task of pool.waiting.splice(0)) task.reject(reason);
      await Promise.all([...pool.all].map((thread) => thread.terminate()));
    },
  };
}

/** Gives the first waiting task to a thread, if one is idle or may start. */
function next<Job, Message>(pool: Pool<Job, Message>): void {
  if (pool.waiting.length === 0) return;
  const idle = pool.idle.pop();
  if (idle) {
    work(pool, idle, pool.waiting.shift() as Task<Job, Message>);
    return;
  }
  if (pool.count >= pool.threads) return;
  pool.count += 1;
  const task = pool.waiting.shift() as Task<Job, Message>;
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

function work<Job, Message>(pool: Pool<Job, Message>, thread: Worker, task: Task<Job, Message>): void {
  task.thread = thread;
  task.startTimer();
  listen<Message>(thread, {
    onMessage(message) {
      if (!task.onMessage(message)) return;
      delete task.thread;
      release(pool, thread);
      task.end({ kind: 'message', message });
    },
    onEnd(error) {
      task.end({ kind: 'ended', error });
      drop(pool, thread);
    },
  });
  thread.ref();
  thread.postMessage(task.job);
}

function release<Job, Message>(pool: Pool<Job, Message>, thread: Worker): void {
  // What an idle thread still reports is of no interest, and must not reach the process as an uncaught error.
  listen(thread, { onMessage() {}, onEnd: () => drop(pool, thread) });
  // An idle thread does not keep the process alive.
  thread.unref();
  pool.idle.push(thread);
  next(pool);
}

function drop<Job, Message>(pool: Pool<Job, Message>, thread: Worker): void {
  if (!pool.all.delete(thread)) return;
  pool.count -= 1;
  const index = pool.idle.indexOf(thread);
  if (index !== -1) pool.idle.splice(index, 1);
  end(thread);
  next(pool);
}

function end(thread: Worker): void {
  listen(thread, { onMessage() {}, onEnd() {} });
  void thread.terminate();
}

async function startThread<Job, Message>(pool: Pool<Job, Message>): Promise<Worker> {
  let thread: Worker;
  let first: Message;
  try {
    const { Worker } = (await importModule('node:worker_threads')) as typeof import('node:worker_threads');
    thread = new Worker(pool.program, pool.options);
    first = await new Promise<Message>((resolve, reject) => {
      listen<Message>(thread, { onMessage: resolve, onEnd: reject });
    });
  } catch (cause) {
    throw pool.noThread(cause, undefined);
  }
  const missing = pool.missing(first);
  if (missing !== undefined) {
    end(thread);
    throw pool.noThread(undefined, missing);
  }
  pool.all.add(thread);
  return thread;
}

/** Replaces the listeners of a thread. After that the thread keeps the process alive, because Node.js calls `ref` for a listener. */
function listen<Message>(
  thread: Worker,
  listeners: { onMessage(message: Message): void; onEnd(error: unknown): void },
): void {
  for (const event of ['message', 'error', 'exit']) thread.removeAllListeners(event);
  thread.on('message', listeners.onMessage);
  thread.on('error', listeners.onEnd);
  thread.on('exit', () => listeners.onEnd(new Error('the thread ended')));
}
