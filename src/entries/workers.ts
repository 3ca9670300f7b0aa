/**
 * The public names for Workers, in addition to those of the main entry. Its `createOrchestrator` bundles only the operations that it is given.
 *
 * @module ensemble-orchestrator/workers
 */

export type {
  DurableObjectParts,
  OrchestratingObject,
  WakeableOrchestrator,
} from '../adapters/hosts/workers/to-durable-object.ts';
export { toDurableObject } from '../adapters/hosts/workers/to-durable-object.ts';
export type { Worker, WorkerContext } from '../adapters/hosts/workers/to-worker.ts';
export { toWorker } from '../adapters/hosts/workers/to-worker.ts';
export {
  type PlatformMailBinding,
  type PlatformMailOptions,
  platformMail,
} from '../adapters/mail/platform-mail.ts';
export { durableObjectStorage } from '../adapters/storage/sqlite/durable-object-storage.ts';
export type { DurableObjectContext } from '../engine/host/host.port.ts';
export {
  api,
  type BuiltInOperation,
  code,
  email,
  pdf,
  sms,
  storage,
  think,
  tools,
} from '../orchestrator/options/built-in.ts';
export { createOrchestrator, type WorkerParts } from '../orchestrator/worker-orchestrator.ts';
