/** What the models of a run used, over all its stored calls. */

import type { TokenUsage } from '../model/execution.ts';
import { usageOf } from '../model/step-event.ts';
import type { StepRecord } from '../model/stored-execution.ts';
import { addUsage } from '../model/token-usage.ts';

export class UsageTotal {
  /** Undefined before the first call of a model. */
  total: TokenUsage | undefined;

  /** @param note - a stored decision or mark: only the calls of models count */
  add(note: StepRecord): void {
    const used = usageOf(note);
    if (used) this.total = addUsage(this.total, used);
  }
}
