/** What expressions can read: results so far, the current item, and the run. The compiler compiles against it, the run fills it. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Json, JsonObject } from '../base/json/json.ts';
import type { ExecutionError } from '../execution/execution.ts';
import type { Evaluation } from '../expression/evaluation.ts';
import { DEFAULT_BUDGET } from '../expression/syntax/limits.ts';

/** The result of one name of the flow. There is none until its step was reached. */
export interface NameResult {
  readonly status: 'completed' | 'failed' | 'skipped';
  readonly output: Json;
  readonly error?: ExecutionError;
  /** Set when it failed before it began, because its condition can't be evaluated. */
  readonly executed?: false;
}

/** The values that all scopes of one run share. */
export interface ScopeRun {
  readonly seed: string;
  readonly input: Json;
  readonly env: Readonly<Record<string, string>>;
  readonly headers: JsonObject;
  readonly trigger: JsonObject;
  /** `id`, `ensemble`, `version`, `startedAt`. */
  readonly execution: JsonObject;
  /** Unix ms at which the execution was accepted: what `now()` returns before the first commit. */
  readonly createdAt: number;
}

/** What the expressions of one level or fork can read: the flow itself, an item of a `foreach`, a branch, a round, a `catch`. */
export class ExpressionScope implements Evaluation {
  budget = DEFAULT_BUDGET;
  readonly run: ScopeRun;
  readonly parent: ExpressionScope | undefined;
  /** Results by slot. The scopes of one level share them, except branches that run at the same time. */
  results: (NameResult | undefined)[];
  /** The error that the `catch` around it caught. */
  caught: ExecutionError | undefined;
  readonly item: Json;
  readonly index: number;
  /** Prefix of the keys of all steps in this level; empty for the flow. */
  readonly keyPrefix: string;
  /** The ensemble's state for the current step: one snapshot a step. */
  state: JsonObject = NO_STATE;
  /** What the `{{ ... }}` of templates read first. Set before a config is evaluated. */
  data: JsonObject = NO_FIELDS;
  missing: string | undefined = undefined;
  refuseMissing: ((field: string) => void) | undefined = undefined;
  /** Output of the latest step of this level; null when the step was skipped. */
  lastOutput: Json = null;
  /** Unix ms of the last commit of this level: what `now()` returns. Each level has its own, so that a resumed run gets the same. */
  lastCommitAt: number;
  private drawKey = '';
  private drawPart = '';
  private draws = 0;

  constructor(
    run: ScopeRun,
    parent: ExpressionScope | undefined,
    slots: number,
    keyPrefix = '',
    item: Json = null,
    index = 0,
  ) {
    this.run = run;
    this.parent = parent;
    this.results = slots === 0 ? NO_RESULTS : new Array<NameResult | undefined>(slots).fill(undefined);
    this.caught = parent?.caught;
    this.keyPrefix = keyPrefix;
    this.item = item;
    this.index = index;
    this.lastCommitAt = parent?.lastCommitAt ?? run.createdAt;
  }

  /** Begins the evaluation of one part (`config`, `condition`, ...) of one step: with a new budget, and its own random values. */
  begin(key: string, part: string): this {
    this.budget = DEFAULT_BUDGET;
    this.drawKey = key;
    this.drawPart = part;
    this.draws = 0;
    return this;
  }

  /** Key of the step that is being evaluated. */
  get place(): string {
    return this.drawKey;
  }

  // Derived from the execution's seed: a resumed run gets the same values, and none is stored.
  private digest(): Uint8Array {
    this.draws += 1;
    return sha256(utf8ToBytes(`${this.run.seed}|${this.drawKey}|${this.drawPart}|${this.draws}`));
  }

  random(): number {
    const bytes = this.digest();
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    return (view.getUint32(0) * 2 ** 21 + (view.getUint32(4) >>> 11)) / 2 ** 53;
  }

  uuid(): string {
    const bytes = this.digest().slice(0, 16);
    bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
    const hex = bytesToHex(bytes);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }

  now(): number {
    return this.lastCommitAt;
  }
}

const NO_STATE: JsonObject = Object.freeze({});
export const NO_FIELDS: JsonObject = NO_STATE;
const NO_RESULTS: (NameResult | undefined)[] = [];
