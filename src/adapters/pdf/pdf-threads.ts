/** Renders PDFs in threads, which end a document that takes too much time or memory. */

import { messageOf, OrchestratorError } from '../../engine/base/errors.ts';
import type { PdfDocument } from '../../engine/operation/pdf.port.ts';
import { createThreadPool } from '../threads/thread-pool.ts';
import { renderingTimeout } from './print-options.ts';
import type { ThreadData, ThreadJob, ThreadMessage } from './thread-messages.ts';

export interface PdfThreads {
  /** Renders in one of the threads. The time includes the wait for a thread. */
  render(job: ThreadJob, limits: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<PdfDocument>;
  close(): Promise<void>;
}

const MIB = 1024 * 1024;

export function createPdfThreads(given: {
  readonly threads: number;
  readonly memoryBytes: number;
  readonly data: ThreadData;
}): PdfThreads {
  const { threads, memoryBytes, data } = given;
  const pool = createThreadPool<ThreadJob, ThreadMessage>({
    threads,
    program: new URL('./pdf-thread.js', import.meta.url),
    options: {
      ...{ workerData: data, env: {}, execArgv: [] },
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(memoryBytes / MIB) },
    },
    missing: (first) => ('missing' in first ? first.missing : undefined),
    noThread,
  });
  return {
    async render(job, { timeoutMs, signal }) {
      const end = await pool.run(job, { timeoutMs, countsWait: true, signal, onMessage: () => true });
      if (end.kind === 'time') throw renderingTimeout('embeddedPdf', timeoutMs);
      if (end.kind === 'ended') throw endOf(end.error, memoryBytes);
      const { message } = end;
      if ('content' in message) return message;
      throw 'refused' in message
        ? invalidHtml(message.refused)
        : rendererFailure(`failed: ${'failed' in message && message.failed}`);
    },
    close: () => pool.close(rendererFailure('was closed')),
  };
}

function noThread(cause: unknown, missing: string | undefined): OrchestratorError {
  const message =
    missing ??
    `embeddedPdf: no thread can be started here (${messageOf(cause)}); on Workers, use cloudflarePdf(). A bundler must keep \`pdf-thread.js\` of this package next to the bundle, or leave this package out of it`;
  return new OrchestratorError('NOT_CONFIGURED', message, { cause });
}

function endOf(error: unknown, memoryBytes: number): OrchestratorError {
  const isFull = (error as { readonly code?: unknown } | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY';
  const limit = `it needs more than ${memoryBytes} bytes of memory; split it, or raise \`memoryBytes\` of embeddedPdf`;
  return isFull ? invalidHtml(limit) : rendererFailure(`ended: ${messageOf(error)}`);
}

function invalidHtml(why: string): OrchestratorError {
  return new OrchestratorError('INVALID_INPUT', `this HTML can't be rendered: ${why}`);
}

function rendererFailure(how: string): OrchestratorError {
  return new OrchestratorError('AGENT_FAILED', `embeddedPdf: the renderer ${how}`, { retryable: true });
}
