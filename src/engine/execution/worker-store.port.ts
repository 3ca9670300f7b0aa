/** The part of a storage that knows which workers are alive. A worker is an engine that runs executions. */

import type { MaybePromise } from '../operation/operation.port.ts';

/** The result of a check for dead workers. */
export interface Reclaimed {
  /** How many executions are free now. */
  readonly freed: number;
  /** After this number of ms, another worker may be known to be dead. Absent if nothing indicates that. */
  readonly againInMs?: number;
}

export interface WorkerStore {
  /**
   * Registers `worker`, which counts as alive until `leaseUntil` (Unix ms). If the worker is registered already, only its lease
   * changes. A storage for one process frees what the workers of earlier processes held. It adds one recovery to each of these
   * executions, and blames them as `reclaimFromDead` does.
   * @throws CONFLICT if the storage allows one worker only, and another process is that worker
   */
  register(
    worker: string,
    lease: { readonly now: number; readonly leaseUntil: number; readonly blameFrom?: number },
  ): MaybePromise<void>;
  /** @returns false if the worker is not registered any more: it was considered dead, or it was unregistered */
  renew(worker: string, leaseUntil: number): MaybePromise<boolean>;
  /** Removes a worker. The executions that it holds are free, and due at `now`. Does nothing for an unknown worker. */
  unregister(worker: string, now: number): MaybePromise<void>;
  /**
   * Removes other workers that are considered dead: those whose lease has expired by `now`, and those whose process is known to have
   * ended. The executions that they held are free, due at `now`, and have one more recovery each. From then on, late writes of a
   * removed worker are refused, and the worker that claims an execution sees all earlier writes. A dead worker that can't be removed
   * at the moment delays the others only briefly, and the next call checks it again.
   *
   * **Blame** estimates which executions end their process. An execution of a dead worker is blamed if the worker claimed or started
   * it at `blameFrom` or later, and no record of it is stored that began after that.
   *
   * | execution of a dead worker | its blame afterwards |
   * |---|---|
   * | blamed, and had no blame | 1 |
   * | blamed, and had some | one share more, see below |
   * | not blamed | 0 |
   *
   * A share is 1,000, divided by the number of executions that are blamed for this death, and divided by the number of workers that
   * have registered since the execution was last blamed (at least 1), rounded down. The second divisor is there because an execution
   * is not to blame for processes that die without it. Blame also becomes 0 when an execution is claimed after it waited, and when
   * a worker that is alive leaves it free.
   * @param blameFrom - Unix ms. Without it, no execution is blamed
   */
  reclaimFromDead(worker: string, now: number, blameFrom?: number): MaybePromise<Reclaimed>;
  /** All executions that a worker holds, for a worker that does not know whether its claim succeeded. */
  listHeld(worker: string): MaybePromise<readonly { readonly executionId: string; readonly epoch: number }[]>;
}
