/** The plan of a dry run while it is made. It holds no more than is stored of it, however long the run is. */

import type { Json } from '../base/json/json.ts';
import { jsonTextBytes } from '../base/json/measure-json.ts';
import { replaceAt, valueAt } from '../base/json/value-at.ts';
import type { PlannedStep } from '../execution/execution.ts';
import type { AttemptedStep } from '../execution/journal.port.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] | undefined };
/** A step of a plan that is being made. */
export type NewPlannedStep = Pick<PlannedStep, 'key' | 'kind' | 'name' | 'at'> & Partial<Writable<PlannedStep>>;

const MAX_STEPS = 1_000;
/** Of all values, as JSON text. */
const MAX_BYTES = 1024 * 1024;
const MASKED = '***';

export class DryPlan {
  readonly steps: NewPlannedStep[] = [];
  readonly #elapsed: () => number;
  readonly #mask: (value: Json) => Json;
  #bytes = 0;
  /** The steps that are not kept. */
  readonly #left = new WeakSet<NewPlannedStep>();
  /** The sizes of values that several steps get, such as the input of the execution. */
  readonly #sizes = new WeakMap<object, number>();

  /** @param mask - removes the texts of secrets from a value */
  constructor(elapsed: () => number, mask: (value: Json) => Json) {
    this.#elapsed = elapsed;
    this.#mask = mask;
  }

  /** A step happens now. Those after the first 1,000 are not kept. */
  add(step: Omit<NewPlannedStep, 'at'>): NewPlannedStep {
    const planned = { ...step, at: this.#elapsed() };
    if (this.steps.length < MAX_STEPS) this.steps.push(planned);
    else this.#left.add(planned);
    return planned;
  }

  /**
   * Sets a value of a step, without its secrets. One that would make the plan too large is left out.
   * @param secrets - the paths of what reads secrets, see `AttemptedStep`
   */
  put(
    step: NewPlannedStep,
    name: 'input' | 'config' | 'output',
    value: Json,
    secrets: AttemptedStep['secrets'] = [],
  ): void {
    if (this.#left.has(step)) return;
    const bytes = this.#bytesOf(value);
    if (this.#bytes + bytes > MAX_BYTES) {
      step.omitted = true;
      return;
    }
    this.#bytes += bytes;
    const masked = this.#mask(value);
    step[name] = secrets
      .filter(([part]) => part === name)
      .reduce((known, [, ...path]) => hide(known, value, path), masked) as never;
  }

  #bytesOf(value: Json): number {
    if (typeof value !== 'object' || value === null) return jsonTextBytes(value, MAX_BYTES);
    const known = this.#sizes.get(value) ?? jsonTextBytes(value, MAX_BYTES);
    this.#sizes.set(value, known);
    return known;
  }
}

/** Hides what an expression has made of a secret, so that its text is not found. */
function hide(masked: Json, value: Json, path: readonly (string | number)[]): Json {
  const before = valueAt(value, path);
  const after = valueAt(masked, path);
  if (before === undefined || after === undefined) return masked;
  return JSON.stringify(before) === JSON.stringify(after) ? replaceAt(masked, path, MASKED) : masked;
}
