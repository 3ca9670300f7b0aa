/** What was stored of a run before it was taken up again, by key. */

import type { StepRecord } from '../../engine/model/stored-execution.ts';

const PART = /\.(foreach|parallel)\[\d+\]/g;

export class RecalledRecords {
  readonly #byKey = new Map<string, StepRecord>();
  /** The blocks and items of which something was stored; found when they are asked for. */
  #parts: Set<string> | undefined;

  constructor(records: readonly StepRecord[]) {
    for (const record of records) this.#byKey.set(record.key, record);
  }

  get(key: string): StepRecord | undefined {
    return this.#byKey.get(key);
  }

  all(): Iterable<StepRecord> {
    return this.#byKey.values();
  }

  /** Whether a key begins with a prefix that ends at a `foreach` or a `parallel`, or at an item or a branch of one. */
  beginsWith(prefix: string): boolean {
    this.#parts ??= partsOf(this.#byKey.keys());
    return this.#parts.has(prefix);
  }
}

function partsOf(keys: Iterable<string>): Set<string> {
  const parts = new Set<string>();
  for (const key of keys) {
    for (const { index, 0: part, 1: block = '' } of key.matchAll(PART)) {
      parts.add(key.slice(0, index + 1 + block.length));
      parts.add(key.slice(0, index + part.length));
    }
  }
  return parts;
}
