/**
 * What a run leaves out for the next one: the records of rounds and items that are over.
 *
 * It knows the keys of all records of the execution that a later run needs, and drops those of parts that are over. A fold that would
 * be too large is not made: then the one with which the run began stays, and the records after it are read, as without any fold.
 */

import { IndexRanges } from '../base/index-ranges.ts';
import type { Json } from '../base/json/json.ts';
import { maxJsonTextBytes } from '../base/json/measure-json.ts';
import { blocksAround } from '../ensemble/flow-places.ts';
import { usageOf } from '../ensemble/step-event.ts';
import type { TokenUsage } from '../execution/execution.ts';
import type { TakenSignal } from '../execution/journal.port.ts';
import { type Fold, type FoldedBlock, isTakenSignal, type StepRecord } from '../execution/stored-execution.ts';
import type { HeldExecution } from './held-execution.ts';
import type { TakenSignals } from './run-signals.ts';
import { UsageTotal } from './usage-total.ts';

type Describe = () => FoldedBlock & { readonly steps: number };

/** What a record adds to the totals of its execution. */
interface Share {
  readonly agents: 0 | 1;
  readonly usage?: TokenUsage | undefined;
  /** The id of the signal that a wait took. */
  readonly taken?: string;
}

const NONE: Share = { agents: 0 };
const AGENT: Share = { agents: 1 };
/** It is written at each suspension, and read at each resume. */
const MAX_FOLD_BYTES = 64 * 1024;
/** Up to this number of keys and blocks, nothing is dropped before the run leaves. */
const FEW = 200;

export class FoldedBlocks {
  readonly #version: string;
  readonly #first: Fold | undefined;
  readonly #described = new Map<string, Describe>();
  /** By the key of a record that a later run needs, in the order in which they were first stored. */
  readonly #shares = new Map<string, Share>();
  #last: string | undefined;
  /** The totals of what was dropped. */
  #agents: number;
  readonly #usage = new UsageTotal();
  readonly #taken: Set<string>;
  #dropsAt = FEW;

  constructor({ execution, fold: first, records = [] }: HeldExecution) {
    this.#version = execution.version;
    this.#first = first;
    this.#agents = first?.agents ?? 0;
    this.#usage.addUsage(first?.usage);
    this.#taken = new Set(first?.taken);
    const known = new Set(first?.keys);
    for (const record of records) if (known.has(record.key)) this.#shares.set(record.key, shareOf(record));
    // Those of its keys were stored before the last record that it takes into account.
    this.#last = first?.after;
    this.add(records.filter(({ key }) => !known.has(key)));
  }

  /** Records that are written. One that replaces another has its key. */
  add(records: readonly StepRecord[]): void {
    for (const record of records) {
      if (!this.#shares.has(record.key)) this.#last = record.key;
      this.#shares.set(record.key, shareOf(record));
    }
    if (this.#shares.size + this.#described.size > this.#dropsAt) this.#drop();
  }

  get(blockKey: string): FoldedBlock | undefined {
    const { blocks } = this.#first ?? {};
    return blocks && Object.hasOwn(blocks, blockKey) ? blocks[blockKey] : undefined;
  }

  describe(blockKey: string, describe: Describe): void {
    this.#described.set(blockKey, describe);
  }

  /** @param signals - what the waits of this run know; undefined when there were none */
  make(signals: TakenSignals | undefined): Fold | undefined {
    const { blocks, steps } = this.#drop();
    if (blocks.size === 0 || this.#last === undefined) return this.#first;
    const { total: usage } = this.#usage;
    const passed = signals ? signals.passed : this.#first?.passed;
    const taken = [...(signals?.taken ?? this.#taken)];
    const fold: Fold = {
      version: this.#version,
      blocks: Object.fromEntries(blocks),
      keys: [...this.#shares.keys()],
      after: this.#last,
      steps: Math.max(steps, this.#first?.steps ?? 0),
      agents: this.#agents,
      ...(usage && { usage }),
      ...(passed && { passed }),
      ...(taken.length > 0 && { taken }),
    };
    return maxJsonTextBytes(fold as unknown as Json, MAX_FOLD_BYTES) > MAX_FOLD_BYTES ? this.#first : fold;
  }

  /** Drops the records of all parts that are over, and the blocks inside them. */
  #drop(): { readonly blocks: ReadonlyMap<string, FoldedBlock>; readonly steps: number } {
    const blocks = new Map<string, FoldedBlock>(Object.entries(this.#first?.blocks ?? {}));
    let steps = 0;
    for (const [key, describe] of this.#described) {
      const { steps: counted, ...block } = describe();
      steps = Math.max(steps, counted);
      if (block.over.length > 0) blocks.set(key, block);
    }
    const over = new Map([...blocks].map(([key, block]) => [key, new IndexRanges(block.over)]));
    for (const key of [...blocks.keys(), ...this.#described.keys()]) {
      if (!isOver(key, over)) continue;
      blocks.delete(key);
      this.#described.delete(key);
    }
    for (const [key, { agents, usage, taken }] of this.#shares) {
      if (!isOver(key, over)) continue;
      this.#shares.delete(key);
      this.#agents += agents;
      this.#usage.addUsage(usage);
      if (taken !== undefined) this.#taken.add(taken);
    }
    this.#dropsAt = 2 * Math.max(FEW, this.#shares.size + this.#described.size);
    return { blocks, steps };
  }
}

function shareOf(record: StepRecord): Share {
  if (!record.note) return record.retryAt === undefined ? AGENT : NONE;
  const usage = usageOf(record);
  if (isTakenSignal(record)) return { agents: 0, usage, taken: (record.output as unknown as TakenSignal).signal };
  return usage ? { agents: 0, usage } : NONE;
}

/** Whether a key is of a part that is over, or inside one. */
function isOver(key: string, over: ReadonlyMap<string, IndexRanges>): boolean {
  return blocksAround(key).some(({ block, index }) => over.get(block)?.has(index));
}
