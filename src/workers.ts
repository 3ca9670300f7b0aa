/** The public names for Workers, beside those of the main entry. */

export type { Worker, WorkerContext } from './adapters/workers/to-worker.ts';
export { toWorker } from './adapters/workers/to-worker.ts';
