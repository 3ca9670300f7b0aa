/**
 * The storage as the parts of an orchestrator use it: with timeouts, and waiting while it is away for a moment, such as a database that
 * restarts, instead of refusing every call at once.
 */

import { withStorageTimeout } from '../adapters/storage/with-storage-timeout.ts';
import { isOrchestratorError } from '../engine/base/errors.ts';
import type { JsonObject } from '../engine/base/json/json.ts';
import { andThen, isPromise, type MaybePromise } from '../engine/base/maybe-promise.ts';
import type { Emitter } from '../engine/events/rules/emitter.ts';
import type { Clock } from '../engine/host/clock.port.ts';
import type { Logger } from '../engine/host/logger.port.ts';
import { createStorageRetry } from '../engine/running/storage-retry.ts';
import type { DocumentStore } from '../engine/storage/document-store.port.ts';
import type { Storage, StorageParts } from '../engine/storage/storage.port.ts';
import { callPart, createParts, type StorageMethod } from '../engine/storage/storage-methods.port.ts';
import { withOutboxNotice } from './deliveries/connect-deliveries.ts';
import type { SteadyClock } from './timed/steady-clock.ts';

/** After this time, a call of the storage fails. The call may have had its effect all the same. */
const STORAGE_TIMEOUT_MS = 10_000;
/** How long a call waits for a storage that is away. */
const READ_WAIT_MS = 2_000;
const WRITE_WAIT_MS = 10_000;

/** The methods that change something. Each can be called again with the same arguments. All others read, but for those of {@link IMPATIENT}. */
const WRITES =
  /^(executions\.(requestCancel|delete|putLimits|closeLimits)|signals\.put|state\.write|schedules\.advance|definitions\.put|documents\.write|deliveries\.requeue|tokens\.(put|delete))$/;
/** What has its own way to wait: work in the background, steps of runs, and the counting of requests. */
const IMPATIENT =
  /^(workers\.|executions\.(claim|take|poll|purge)$|deliveries\.(claim|settle|purge|receivers)$|rates\.|tallies\.fold$)/;

/** A storage says so. Any other error of a caller's own storage may be a mistake in it, and is not repeated. */
const isAway = (thrown: unknown) => isOrchestratorError(thrown) && thrown.retryable;

/**
 * @param readMs - how long a read waits
 * @throws OVERLOADED when a call failed for so long; a permanent failure at once, as it is
 */
function withPatience(storage: Storage, clock: Clock, logger: Logger, readMs: number): Storage {
  const reading = createStorageRetry(clock, logger, readMs, isAway);
  const writing = createStorageRetry(clock, logger, WRITE_WAIT_MS, isAway);
  const method = (part: keyof StorageParts, name: string): StorageMethod => {
    const called = `${part}.${name}`;
    const call: StorageMethod = (...args) => callPart(storage, part, name, args);
    if (IMPATIENT.test(called)) return call;
    if (called === 'documents.write')
      return ((...args: Parameters<DocumentStore['write']>) =>
        writing(repeatableWrite(storage.documents, args))) as StorageMethod;
    const retry = WRITES.test(called) ? writing : reading;
    return (...args) => retry(() => call(...args));
  };
  return { ...storage, ...createParts(method), kv: storage.kv, objects: storage.objects };
}

export interface StorageHost {
  readonly clock: SteadyClock;
  readonly logger: Logger;
  readonly events: Pick<Emitter, 'measure'>;
  /** A commit has stored deliveries. */
  onStored(): void;
}

export interface ConnectedStorage {
  /** For reads. */
  readonly storage: Storage;
  /** For calls that are not mere reads. */
  readonly patient: Storage;
  /** For the engine, which waits in its own way. */
  readonly engineStorage: Storage;
}

export function connectStorage(given: Storage, host: StorageHost): ConnectedStorage {
  const { clock, logger, events, onStored } = host;
  const timed = withStorageTimeout(given, clock, STORAGE_TIMEOUT_MS, () => events.measure);
  const noticed = withOutboxNotice(timed, onStored);
  // The host wakes by its own clock.
  const wakeAt = timed.wakeAt && ((at: number) => timed.wakeAt?.(clock.toWall(at)));
  return {
    engineStorage: wakeAt ? { ...noticed, wakeAt } : noticed,
    storage: withPatience(noticed, clock, logger, READ_WAIT_MS),
    patient: withPatience(noticed, clock, logger, WRITE_WAIT_MS),
  };
}

/**
 * A write under a version that may have had its effect although its answer was lost: when it is repeated and refused, the document is
 * compared with what was to be written.
 */
function repeatableWrite(
  documents: DocumentStore,
  [kind, name, change]: Parameters<DocumentStore['write']>,
): () => MaybePromise<boolean> {
  let isUnknown = false;
  const noted = (thrown: unknown): never => {
    isUnknown ||= isAway(thrown);
    throw thrown;
  };
  const isStored = async () => {
    const found = await documents.read(kind, name, change.now);
    const { document, expectedVersion } = change;
    if (!document || !found) return !document && !found;
    const same = (one: { readonly value: JsonObject; readonly tag: string; readonly updatedAt: number }) =>
      JSON.stringify([one.value, one.tag, one.updatedAt]);
    return found.version === expectedVersion + 1 && same(found) === same(document);
  };
  return () => {
    try {
      const wasUnknown = isUnknown;
      const answer = andThen(documents.write(kind, name, change), (stored) => stored || (wasUnknown && isStored()));
      return isPromise(answer) ? answer.catch(noted) : answer;
    } catch (thrown) {
      return noted(thrown);
    }
  };
}
