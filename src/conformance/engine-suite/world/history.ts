/** The history of one world: which effects the scripts had, and which entries were stored, whether or not a process was notified. */

import type { Json } from '../../../engine/base/json/json.ts';
import type { CommitEntry, ExecutionEnd, StepRecord } from '../../../engine/execution/stored-execution.ts';
import type { CommitResult } from '../../../engine/storage/storage.port.ts';
import { same } from '../../storage-suite/context.ts';

/** A script began: from then on the outside may have seen its effect. */
export interface Effect {
  /** Number of the process, counted from 1 in the order in which the processes were opened. */
  readonly process: number;
  readonly executionId: string;
  /** The agent, the `i` of its input if there is one, and the attempt: equal in every run of one flow. */
  readonly label: string;
  /** Equal for all attempts of one step. */
  readonly idempotencyKey: string;
  readonly input: Json;
}

/** An entry that was stored, whether or not its process received the answer. */
export interface StoredEntry extends CommitEntry {
  readonly process: number;
}

export interface History {
  readonly effects: readonly Effect[];
  readonly entries: readonly StoredEntry[];
  addEffect(effect: Effect): void;
  addCommit(process: number, batch: readonly CommitEntry[], results: readonly CommitResult[]): void;
  /** How often each label had an effect. */
  counts(of?: (effect: Effect) => boolean): ReadonlyMap<string, number>;
  /**
   * Checks the rules that hold whatever happens:
   *
   * - A step has one result.
   * - An execution ends once, and nothing of it is stored after its end.
   * - The epochs under which something is stored never decrease, and each epoch belongs to one process.
   * - Every attempt of a step receives the same input: the same random values, and the same instant of the last commit.
   *
   * @throws Error when one of them is broken
   */
  check(): void;
}

interface Known {
  epoch: number;
  /** The process that wrote under that epoch. */
  process: number;
  end: ExecutionEnd | undefined;
  readonly results: Map<string, StepRecord>;
  /** As texts, to recognize an entry that is stored again. */
  readonly entries: Set<string>;
}

export function createHistory(): History {
  const effects: Effect[] = [];
  const entries: StoredEntry[] = [];

  const checkEntry = (entry: StoredEntry, known: Known): void => {
    const { executionId: id, epoch, steps, end } = entry;
    // A write whose answer was lost is repeated, and changes nothing.
    const text = JSON.stringify({ ...entry, process: 0 });
    if (known.entries.has(text)) return;
    known.entries.add(text);
    if (epoch < known.epoch)
      throw new Error(`the epoch of ${id} decreased: it was written under ${epoch} after ${known.epoch}`);
    if (epoch === known.epoch && entry.process !== known.process)
      throw new Error(
        `an epoch has two writers: processes ${known.process} and ${entry.process} wrote ${id} under ${epoch}`,
      );
    known.epoch = epoch;
    known.process = entry.process;
    if (known.end) throw new Error(`something of ${id} was stored after its end`);
    known.end = end;
    for (const step of steps) {
      const stored = known.results.get(step.key);
      if (stored) same(step, stored, `a stored result was replaced: ${step.key} in ${id}`);
      else if (step.retryAt === undefined) known.results.set(step.key, step);
    }
  };

  return {
    effects,
    entries,
    addEffect: (effect) => effects.push(effect),
    addCommit(process, batch, results) {
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
        if (before !== undefined) same(input, before, `the input of ${label} differs between attempts`);
        else inputs.set(idempotencyKey, input);
      }
    },
  };
}
