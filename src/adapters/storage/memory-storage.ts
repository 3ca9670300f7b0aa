/** Storage in the memory of one process: the reference for every other one, and the default. */

import { heldBytes } from '../../engine/json-bytes.ts';
import type { CommitEntry, ExecutionEnd, NewSignal, Release } from '../../engine/model/stored-execution.ts';
import type {
  CommitResult,
  Storage,
  StoredDefinition,
  StoredSchedule,
  StoredState,
} from '../../engine/ports/storage.ts';
import { memoryKv, memoryObjects } from './memory-data.ts';
import { createDueQueue } from './memory-due.ts';
import {
  countSignals,
  dueAfter,
  type Held,
  hold,
  holds,
  isRepeated,
  putDeliveries,
  putStep,
} from './memory-execution.ts';
import { memoryListings } from './memory-listings.ts';
import { memoryOwners } from './memory-owners.ts';
import { memoryRoom } from './memory-room.ts';
import { listSignals, putSignal, signalledOf } from './memory-signals.ts';
import { memoryTokens } from './memory-tokens.ts';

export interface MemoryStorageOptions {
  /** How many finished executions are kept, the newest first; those at work are always kept. Default 10,000. */
  readonly keep?: number;
  /**
   * Roughly how many bytes its executions may take, with their inputs, outputs, steps and signals. The oldest finished ones are
   * dropped for it; when what is at work and waiting takes more, starts are refused with OVERLOADED. Default 256 MiB.
   */
  readonly keepBytes?: number;
  /**
   * Whether several orchestrators work on it. They watch each other then: one goes on with what another, which renews its
   * lease no more, left behind. Default false: one alone, which needs no timers for that.
   */
  readonly shared?: boolean;
}

const DEFAULT_KEEP_BYTES = 256 * 1024 * 1024;

/** @throws TypeError when `keep` or `keepBytes` is not a whole number of at least 0 */
export function memoryStorage(options: MemoryStorageOptions = {}): Storage {
  const { keep = 10_000, keepBytes = DEFAULT_KEEP_BYTES, shared = false } = options;
  for (const [name, value] of Object.entries({ keep, keepBytes })) {
    if (!Number.isSafeInteger(value) || value < 0)
      throw new TypeError(`memoryStorage: ${name} must be a whole number of at least 0, not ${value}`);
  }
  const executions = new Map<string, Held>();
  const definitions = new Map<string, StoredDefinition>();
  const states = new Map<string, StoredState>();
  const schedules = new Map<string, StoredSchedule>();
  const free = createDueQueue((id, dueAt) => executions.get(id)?.dueAt === dueAt);
  const room = memoryRoom(executions, keep, keepBytes);
  let queued = 0;

  const release = (held: Held, given: Release) => {
    const { status } = given;
    if (status === 'queued') {
      if (held.status !== 'queued') queued += 1;
      held.startedAt = undefined;
    }
    held.status = status;
    held.owner = undefined;
    held.waitsFor = given.waitsFor;
    held.dueAt = dueAfter(held, given);
    free.add(held.execution, held.dueAt);
  };

  const finish = (held: Held, end: ExecutionEnd) => {
    if (held.status === 'queued') queued -= 1;
    held.status = 'running';
    held.owner = undefined;
    held.dueAt = undefined;
    held.end = end;
    // An array that grew has room to spare, which would be kept for as long as the execution is.
    held.steps = held.steps.slice();
    held.places = undefined;
    room.keep(held);
  };

  const owners = memoryOwners({
    *heldBy(owner) {
      for (const held of executions.values()) if (held.owner === owner) yield held;
    },
    release,
  });

  const hearers = {
    tellOwner: owners.tellSignal,
    makeDue: ({ execution, dueAt }: Held) => free.add(execution, dueAt as number),
  };
  const give = (signal: NewSignal) => {
    const held = executions.get(signal.executionId);
    const bytes = held?.bytes ?? 0;
    const result = putSignal(held, signal, hearers);
    if (held) room.grow(held.bytes - bytes);
    return result;
  };
  const tell = (signals: readonly NewSignal[]) => {
    for (const signal of signals) give(signal);
  };

  const start = (owner: string, entry: CommitEntry): CommitResult => {
    const { start: execution, epoch, release: given } = entry;
    if (!execution) return 'fenced';
    const known = executions.get(execution.id);
    if (known) return known.execution.seed === execution.seed ? 'stored' : 'exists';
    if (!given && !owners.has(owner)) return 'fenced';
    const held = hold(execution, epoch);
    executions.set(execution.id, held);
    for (const step of entry.steps) putStep(held, step);
    room.grow(held.bytes);
    if (entry.deliveries) putDeliveries(held, entry.deliveries);
    if (entry.signals) tell(entry.signals);
    if (given) {
      release(held, given);
      return 'stored';
    }
    held.owner = owner;
    held.startedAt = execution.createdAt;
    return 'stored';
  };

  const commitOne = (owner: string, entry: CommitEntry): CommitResult => {
    if (entry.start) return start(owner, entry);
    const held = executions.get(entry.executionId);
    if (!held) return 'fenced';
    if (!holds(held, owner, entry.epoch)) return isRepeated(held, entry) ? 'stored' : 'fenced';
    if (entry.state) {
      const { ensemble, expectedVersion, value, updatedAt } = entry.state;
      if ((states.get(ensemble)?.version ?? 0) !== expectedVersion)
        return isRepeated(held, entry) ? 'stored' : 'state-conflict';
      states.set(ensemble, { value, version: expectedVersion + 1, updatedAt });
    }
    const { bytes } = held;
    for (const step of entry.steps) putStep(held, step);
    if (entry.end) held.bytes += heldBytes(entry.end.output);
    room.grow(held.bytes - bytes);
    if (entry.deliveries) putDeliveries(held, entry.deliveries);
    if (entry.end) finish(held, entry.end);
    else if (entry.release) release(held, entry.release);
    if (entry.signals) tell(entry.signals);
    return 'stored';
  };

  return {
    capabilities: { sharedCommits: true, groupedCommits: false, shared },
    tokens: memoryTokens(),
    kv: memoryKv(),
    objects: memoryObjects(),
    join: owners.join,
    renew: owners.renew,
    leave: owners.leave,
    recover: owners.recover,
    commit(owner, batch) {
      for (const { start: execution } of batch) {
        // A child belongs to what was accepted: its parent would wait for room that only it can make.
        if (execution && execution.trigger.parentId === undefined && !executions.has(execution.id)) room.check();
      }
      return batch.length === 1
        ? [commitOne(owner, batch[0] as CommitEntry)]
        : batch.map((entry) => commitOne(owner, entry));
    },
    claim(owner, query) {
      if (!owners.has(owner)) return [];
      return free.take(query, (id) => {
        const held = executions.get(id) as Held;
        const begun = held.startedAt !== undefined;
        if (held.status === 'queued') queued -= 1;
        if (held.status === 'waiting') held.blame = 0;
        held.claimedAt = query.now;
        held.status = 'running';
        held.owner = owner;
        held.dueAt = undefined;
        held.epoch += 1;
        held.startedAt ??= query.now;
        held.signalledAt = undefined;
        const { execution, epoch, startedAt, recoveries, blame } = held;
        const cancelRequested = held.cancelRequestedAt !== undefined;
        const signals = countSignals(held);
        return { execution, epoch, startedAt, begun, recoveries, blame, cancelRequested, signals };
      });
    },
    listHeld: owners.held,
    survey(owner, except) {
      const nextDueAt = free.next(except);
      const isHeld = (id: string) => executions.get(id)?.owner === owner;
      const cancelRequested = owners.cancelRequested(owner).filter(isHeld);
      const signalled = signalledOf(owners.signalled(owner).filter(isHeld), executions);
      return nextDueAt === undefined ? { cancelRequested, signalled } : { nextDueAt, cancelRequested, signalled };
    },
    countQueued: (limit) => Math.min(queued, limit),
    requestCancel(id, now, end) {
      const held = executions.get(id);
      if (!held) return undefined;
      if (held.end) return held.end.status;
      if (held.owner === undefined && held.status === 'queued' && held.execution.trigger.parentId === undefined) {
        finish(held, end);
        return end.status;
      }
      if (held.cancelRequestedAt !== undefined) return held.status;
      held.cancelRequestedAt = now;
      if (held.owner !== undefined) owners.tellCancel(held.owner, id);
      else release(held, { status: held.status, dueAt: held.dueAt as number });
      return held.status;
    },
    putSignal(signal) {
      if (executions.has(signal.executionId)) room.check();
      return give(signal);
    },
    listSignals: (id, query) => listSignals(executions.get(id), query),
    findSignal: (executionId, id) => executions.get(executionId)?.signals?.find((signal) => signal.id === id),
    findEnded: (ids) => ids.filter((id) => executions.get(id)?.end !== undefined || !executions.has(id)),
    purge({ owner, before, limit, after = '' }) {
      if (owners.first() !== owner) return undefined;
      const old = [...executions.keys()]
        .filter((id) => id > after && (executions.get(id)?.end?.finishedAt ?? before) < before)
        .sort();
      const batch = old.slice(0, limit);
      for (const id of batch) {
        room.deleted(executions.get(id) as Held);
        executions.delete(id);
      }
      const last = batch.at(-1);
      return old.length > limit && last ? { deleted: batch.length, next: last } : { deleted: batch.length };
    },
    ...memoryListings(executions),
    readState: (ensemble) => states.get(ensemble),
    readSchedule: (name) => schedules.get(name),
    advanceSchedule(name, { expectedVersion, value, updatedAt }) {
      if ((schedules.get(name)?.version ?? 0) !== expectedVersion) return false;
      schedules.set(name, { value, version: expectedVersion + 1, updatedAt });
      return true;
    },
    putDefinition(definition) {
      if (!definitions.has(definition.version)) definitions.set(definition.version, definition);
    },
    getDefinition: (version) => definitions.get(version),
    close() {},
  };
}
