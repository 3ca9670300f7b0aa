/** What really happened in one world: which effects scripts had, and what was stored, whoever heard of it. */

import type { Json } from '../../../engine/json.ts';
import type { CommitEntry, ExecutionEnd, StepRecord } from '../../../engine/model/stored-execution.ts';
import type { CommitResult } from '../../../engine/ports/storage.ts';
import { same } from '../storage-suite/context.ts';

/** A script began: from then on the outer world may have seen it. */
export interface Effect {
  /** Which process, counted from 1 in the order in which they were opened. */
  readonly process: number;
  readonly executionId: string;
  /** The agent, the `i` of its input if there is one, and the attempt: equal in every run of one flow. */
  readonly label: string;
  /** Equal for all attempts of one step. */
  readonly idempotencyKey: string;
  readonly input: Json;
}

/** An entry that was stored, whether or not its process heard of it. */
export interface StoredEntry extends CommitEntry {
  readonly process: number;
}

export interface Ledger {
  readonly effects: readonly Effect[];
  readonly entries: readonly StoredEntry[];
  note(effect: Effect): void;
  noteCommit(process: number, batch: readonly CommitEntry[], results: readonly CommitResult[]): void;
  /** How often each label had an effect. */
  counts(of?: (effect: Effect) => boolean): ReadonlyMap<string, number>;
  /**
   * What must hold whatever happened.
   *
   * | | |
   * |---|---|
   * | I2 | a step has one result |
   * | I4 | an execution ends once, and nothing is stored of it behind that |
   * | I9 | the epochs under which something is stored never go back, and each belongs to one process |
   * | A21 | every attempt of a step is handed the same: what is drawn at random, and the instant of the last commit |
   *
   * @throws Error when one of them does not hold
   */
  check(): void;
}

interface Known {
  epoch: number;
  /** Who wrote under that epoch. */
  process: number;
  end: ExecutionEnd | undefined;
  readonly results: Map<string, StepRecord>;
  /** As texts: the same entry again is no second one. */
  readonly entries: Set<string>;
}

export function createLedger(): Ledger {
  const effects: Effect[] = [];
  const entries: StoredEntry[] = [];

  const checkEntry = (entry: StoredEntry, known: Known): void => {
    const { executionId: id, epoch, steps, end } = entry;
    // A write whose answer was lost is made again, and changes nothing.
    const text = JSON.stringify({ ...entry, process: 0 });
    if (known.entries.has(text)) return;
    known.entries.add(text);
    if (epoch < known.epoch) throw new Error(`I9: ${id} was written under epoch ${epoch} after ${known.epoch}`);
    if (epoch === known.epoch && entry.process !== known.process)
      throw new Error(`I9: processes ${known.process} and ${entry.process} both wrote ${id} under epoch ${epoch}`);
    known.epoch = epoch;
    known.process = entry.process;
    if (known.end) throw new Error(`I4: something was stored of ${id} behind its end`);
    known.end = end;
    for (const step of steps) {
      const stored = known.results.get(step.key);
      if (stored) same(step, stored, `I2: the result of ${step.key} in ${id}`);
      else if (step.retryAt === undefined) known.results.set(step.key, step);
    }
  };

  return {
    effects,
    entries,
    note: (effect) => effects.push(effect),
    noteCommit(process, batch, results) {
      for (const [i, entry] of batch.entries()) if (results[i] === 'stored') entries.push({ ...entry, process });
    },
    counts(of = () => true) {
      const counts = new Map<string, number>();
      for (const effect of effects) if (of(effect)) counts.set(effect.label, (counts.get(effect.label) ?? 0) + 1);
      return counts;
    },
    check() {
      const executions = new Map<string, Known>();
      for (const entry of entries) {
        const fresh: Known = { epoch: -1, process: 0, end: undefined, results: new Map(), entries: new Set() };
        const known = executions.get(entry.executionId) ?? fresh;
        executions.set(entry.executionId, known);
        checkEntry(entry, known);
      }
      const inputs = new Map<string, Json>();
      for (const { idempotencyKey, input, label } of effects) {
        const before = inputs.get(idempotencyKey);
        if (before !== undefined) same(input, before, `A21: what ${label} was handed`);
        else inputs.set(idempotencyKey, input);
      }
    },
  };
}
