/** The slots of callers in the memory storage: how many of their executions are held. */

/** The slot of an execution while a worker holds it. */
export interface Slot {
  readonly account: string;
  /** How many executions of the account may be held at once. */
  readonly slots: number;
}

export interface Slots {
  taken(account: string): number;
  isFree(slot: Slot): boolean;
  take(slot: Slot): void;
  give(slot: Slot): void;
}

export function memorySlots(): Slots {
  const held = new Map<string, number>();
  const taken = (account: string) => held.get(account) ?? 0;
  return {
    taken,
    isFree: ({ account, slots }) => taken(account) < slots,
    take({ account }) {
      held.set(account, taken(account) + 1);
    },
    give({ account }) {
      if (taken(account) > 1) held.set(account, taken(account) - 1);
      else held.delete(account);
    },
  };
}
