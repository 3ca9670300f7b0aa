/** Declares the cases of a conformance suite. Each case has a new, empty store, which is closed after the case. */

import type { MaybePromise } from '../engine/operation/operation.port.ts';
import type { SuiteRunner } from './http-suite.ts';

/** Declares one case. `reopen` closes the handle that is open, and opens the next one on the same data. */
export type DeclareCase<S> = (name: string, body: (store: S, reopen: () => Promise<S>) => Promise<void>) => void;

/** A handle on the stores of a suite. */
interface Handle {
  close?(): MaybePromise<void>;
}

export interface StoreOptions<H extends Handle> {
  /** Opens a new, empty store. */
  readonly create: () => MaybePromise<H>;
  /** Opens another handle on the data of the store that `create` opened last. */
  readonly reopen?: (() => MaybePromise<H>) | undefined;
  readonly test: SuiteRunner;
}

/** Declares cases on the handles that the options open. */
export function declareCases<H extends Handle>({ create, reopen, test }: StoreOptions<H>): DeclareCase<H> {
  return (name, body) =>
    test.it(name, async () => {
      let handle = await create();
      const next = async () => {
        if (!reopen) throw new Error('the suite has no option `reopen`');
        await handle.close?.();
        handle = await reopen();
        return handle;
      };
      try {
        await body(handle, next);
      } finally {
        await handle.close?.();
      }
    });
}

/** Declares cases on a part of each handle. */
export function declareOnPart<H, S>(it: DeclareCase<H>, pick: (handle: H) => S): DeclareCase<S> {
  return (name, body) => it(name, (handle, reopen) => body(pick(handle), async () => pick(await reopen())));
}
