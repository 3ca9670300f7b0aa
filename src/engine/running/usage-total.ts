/** What the models of a run used, over all its stored calls. */

import { usageOf } from '../ensemble/step-event.ts';
import type { TokenUsage } from '../execution/execution.ts';
import type { StepRecord } from '../execution/stored-execution.ts';
import { addUsage } from '../operation/token-usage.ts';

export class UsageTotal {
  /** Undefined before the first call of a model. */
  total: TokenUsage | undefined;

  /** @param used - by calls whose notes are not added */
  addUsage(used: TokenUsage | undefined): void {
    if (used) this.total = addUsage(this.total, used);
  }

  /** @param note - a stored decision or mark: only the calls of models count */
  add(note: StepRecord): void {
    this.addUsage(usageOf(note));
  }
}
