/** One public operation, as the fault tests call it, and what several of them are made of. */

import { code, echo, ensemble, flaky } from '../../src/adapters/testing/engine-suite/steps.ts';
import type { Execution } from '../../src/engine/model/execution.ts';
import type { Rig, RigOptions } from './rig.ts';

export interface Operation {
  readonly name: string;
  readonly options?: RigOptions;
  /** Done while the storage is whole. */
  prepare?(rig: Rig): Promise<string>;
  /** The call, while the storage fails. @param prepared - what `prepare` gave */
  act(rig: Rig, prepared: string): Promise<unknown>;
  /** The call once more, when the storage is whole again. Default: `act`. @throws when it does not come to what it must */
  again?(rig: Rig, prepared: string): Promise<unknown>;
  /** It closes the orchestrator, whatever becomes of the storage: the rest is another one's. */
  readonly closes?: boolean;
  /** Nothing goes on behind it when it fails, until it is called again. */
  readonly single?: boolean;
}

/** Three steps in a row. */
export const plain = ensemble([echo('a', 1), echo('b', 2), echo('c', 3)], { c: '${c.output}' });
/** One of its steps takes a while. */
export const slow = ensemble([echo('a', 1), code('b', 'slow', { input: { ms: 300 } }), echo('c', 3)], {
  c: '${c.output}',
});
/** Waits for a minute. */
export const waits = ensemble([echo('a', 1), flaky('b', 2, { maxAttempts: 2, backoff: 'fixed', delay: 60_000 })]);

export function only(definition: object, more: Partial<RigOptions> = {}): RigOptions {
  return { ensembles: [definition], ...more };
}

/** Runs `e` and refuses any other end. */
export function runs(status: Execution['status'] = 'completed') {
  return async ({ orchestrator }: Rig): Promise<void> => {
    const record = await orchestrator.execute('e', {});
    if (record.status !== status) throw new Error(`it is ${record.status}, not ${status}`);
  };
}
