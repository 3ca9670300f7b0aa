/** The lock that an open storage takes when it registers its first worker, and its form for a store in one process. */

export interface WorkerLock {
  /**
   * @returns false when this storage holds the lock already
   * @throws CONFLICT when another process or storage holds it; NOT_CONFIGURED when the lock can't be created
   */
  take(): boolean;
  /** Does nothing when this storage does not hold the lock. */
  release(): void;
}

/** The lock of a store that no other process can open: a database in memory, or that of a Durable Object. */
export function memoryLock(): WorkerLock {
  let taken = false;
  return {
    take() {
      if (taken) return false;
      taken = true;
      return true;
    },
    release() {
      taken = false;
    },
  };
}
