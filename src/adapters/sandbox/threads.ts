/** Runs sandboxed scripts in threads. */

import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import { createThreadPool } from '../threads/thread-pool.ts';
import type { Answer, GuestLine, Job } from './run-source.ts';

/** What a thread posts: that QuickJS is loaded, or why not; a line of its job, and the end of its job. */
export type ThreadMessage =
  | { readonly ready: true }
  | { readonly failed: string }
  | { readonly line: GuestLine }
  | { readonly answer: Answer };

/** What a script may exceed its time by, before its thread ends: the machine needs a moment to stop, and a slow computer a longer one. */
const GRACE_MS = 500;

/** @returns the function that runs a job in one of the threads */
export function createThreads(threads: number) {
  const pool = createThreadPool<Job, ThreadMessage>({
    threads,
    program: new URL('./sandbox-thread.js', import.meta.url),
    options: { env: {}, execArgv: [] },
    missing: (first) => ('failed' in first ? first.failed : undefined),
    noThread,
  });
  return async (job: Job, onLine: (line: GuestLine) => void, signal?: AbortSignal): Promise<Answer> => {
    const end = await pool.run(job, {
      ...{ timeoutMs: job.limits.timeoutMs + GRACE_MS, countsWait: false, signal },
      onMessage(message) {
        if ('line' in message) onLine(message.line);
        return 'answer' in message;
      },
    });
    if (end.kind === 'time') return { kind: 'time' };
    if (end.kind === 'ended') return { kind: 'broken', message: messageOf(end.error) };
    return (end.message as { readonly answer: Answer }).answer;
  };
}

function noThread(cause: unknown, missing: string | undefined): OrchestratorError {
  if (missing !== undefined) return new OrchestratorError('NOT_CONFIGURED', missing);
  const message = `sandbox: no thread can be started here (${messageOf(cause)}); use \`sandbox({ threads: 0 })\`, on Workers with \`wasm\` (\`import wasm from 'quickjs-wasi/quickjs.wasm'\`)`;
  return new OrchestratorError('NOT_CONFIGURED', message, { cause });
}
