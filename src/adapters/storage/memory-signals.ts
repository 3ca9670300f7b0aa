/** The signals of an execution in a memory storage: what is stored of one that comes, and who is to hear of it. */

import { heldBytes } from '../../engine/json-bytes.ts';
import type { NewSignal } from '../../engine/model/stored-execution.ts';
import type { SignalQuery, SignalResult } from '../../engine/ports/storage.ts';
import { countSignals, type Held } from './memory-execution.ts';

/** What a signal takes beside its payload. */
const SIGNAL_BYTES = 300;

interface Hearers {
  /** Its owner is to hear of it. */
  tellOwner(owner: string, executionId: string): void;
  /** It is due, earlier than it was. */
  makeDue(held: Held): void;
}

export function putSignal(held: Held | undefined, signal: NewSignal, hearers: Hearers): SignalResult {
  if (!held) return 'unknown';
  if (held.signals?.some(({ id }) => id === signal.id)) return 'stored';
  if (held.end) return 'ended';
  held.signals ??= [];
  held.signals.push(signal);
  held.bytes += SIGNAL_BYTES + heldBytes(signal.payload);
  held.signalledAt ??= signal.createdAt;
  if (held.owner !== undefined) hearers.tellOwner(held.owner, signal.executionId);
  else if (isWaitedFor(held, signal) && (held.dueAt as number) > signal.createdAt) {
    held.dueAt = signal.createdAt;
    hearers.makeDue(held);
  }
  return 'stored';
}

function isWaitedFor({ status, waitsFor }: Held, { name }: NewSignal): boolean {
  return status === 'waiting' && (waitsFor === undefined || waitsFor.includes(name));
}

export function listSignals(held: Held | undefined, { name, after, limit }: SignalQuery): readonly NewSignal[] {
  return (held?.signals ?? []).filter((signal) => signal.name === name).slice(after, after + limit);
}

/** Those of some held executions of which their owner was not told. */
export function signalledOf(ids: readonly string[], executions: ReadonlyMap<string, Held>) {
  return ids.map((executionId) => ({ executionId, signals: countSignals(executions.get(executionId) as Held) }));
}
