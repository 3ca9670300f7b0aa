/** One public operation, as the fault tests call it, and ensembles that several operations share. */

import { code, echo, ensemble, flaky } from '../../src/conformance/engine-suite/steps.ts';
import type { Execution } from '../../src/engine/execution/execution.ts';
import type { Rig, RigOptions } from './rig.ts';

export interface Operation {
  readonly name: string;
  readonly options?: RigOptions;
  /** Called before any fault. @returns a text for `act` and `again` */
  prepare?(rig: Rig): Promise<string>;
  /** The call, while the storage fails. @param prepared - the result of `prepare` */
  act(rig: Rig, prepared: string): Promise<unknown>;
  /** Repeats the call after the fault. Default: `act`. @throws Error unless the outcome is right */
  again?(rig: Rig, prepared: string): Promise<unknown>;
  /** The operation closes the orchestrator, whatever the storage does. Another orchestrator continues. */
  readonly closes?: boolean;
  /** If the operation fails, nothing continues until it is called again. */
  readonly single?: boolean;
}

/** Three steps in a row. */
export const plain = ensemble([echo('a', 1), echo('b', 2), echo('c', 3)], { c: '${c.output}' });
/** One of its steps takes 300 ms. */
export const slow = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 300 } }), echo('c', 3)], {
  c: '${c.output}',
});
/** Waits for a minute between two attempts. */
export const waits = ensemble([echo('a', 1), flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 60_000 })]);
/** Waits for the signal `go`. */
export const awaits = ensemble([echo('a', 1), { wait: 'go', timeout: 60_000, onTimeout: 'continue' }, echo('c', 3)]);

export function only(definition: object, more: Partial<RigOptions> = {}): RigOptions {
  return { ensembles: [definition], ...more };
}

/** Runs the ensemble `e`. @throws Error unless it ends with `status` */
export function runs(status: Execution['status'] = 'completed') {
  return async ({ orchestrator }: Rig): Promise<void> => {
    const record = await orchestrator.execute('e', {});
    if (record.status !== status) throw new Error(`the execution is ${record.status}, not ${status}`);
  };
}
