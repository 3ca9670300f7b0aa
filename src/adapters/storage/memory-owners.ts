/** The owners that work on a memory storage: who they are, how long they are taken for alive, and what they were told. */

import type { Release } from '../../engine/model/stored-execution.ts';
import type { Recovered } from '../../engine/ports/storage.ts';
import { bearsBlame, type Held } from './memory-execution.ts';

export interface MemoryOwners {
  readonly join: (owner: string, lease: { readonly now: number; readonly leaseUntil: number }) => void;
  readonly renew: (owner: string, leaseUntil: number) => boolean;
  readonly leave: (owner: string, now: number) => void;
  readonly recover: (owner: string, now: number, blameFrom?: number) => Recovered;
  readonly held: (owner: string) => readonly { readonly executionId: string; readonly epoch: number }[];
  has(owner: string): boolean;
  /** The one that joined first. */
  first(): string | undefined;
  tellCancel(owner: string, executionId: string): void;
  /** Those that it was not told of before. */
  cancelRequested(owner: string): readonly string[];
  tellSignal(owner: string, executionId: string): void;
  /** Those that it was not told of before. */
  signalled(owner: string): readonly string[];
}

export function memoryOwners(parts: {
  heldBy(owner: string): Iterable<Held>;
  release(held: Held, given: Release): void;
}): MemoryOwners {
  /** In the order in which they joined. */
  const owners = new Map<string, Owner>();
  /** How many have joined so far. */
  let joins = 0;

  const blame = (held: Held, blamed: number) => {
    const share = BLAME / (blamed * Math.max(1, joins - held.blamedAt));
    held.blame = held.blame > 0 ? held.blame + Math.floor(share) : 1;
    held.blamedAt = joins;
  };

  const forget = (owner: string, now: number, recoveries: number, blameFrom = Number.POSITIVE_INFINITY): number => {
    owners.delete(owner);
    const all = [...parts.heldBy(owner)];
    const blamed = new Set(all.filter((held) => bearsBlame(held, blameFrom)));
    let freed = 0;
    for (const held of all) {
      held.recoveries += recoveries;
      if (blamed.has(held)) blame(held, blamed.size);
      else held.blame = 0;
      parts.release(held, { status: 'running', dueAt: now });
      freed += 1;
    }
    return freed;
  };

  return {
    join(owner, { leaseUntil }) {
      const known = owners.get(owner);
      if (known) known.leaseUntil = leaseUntil;
      else {
        joins += 1;
        owners.set(owner, { leaseUntil, cancelRequested: new Set(), signalled: new Set() });
      }
    },
    renew(owner, leaseUntil) {
      const known = owners.get(owner);
      if (known) known.leaseUntil = leaseUntil;
      return known !== undefined;
    },
    leave(owner, now) {
      if (owners.has(owner)) forget(owner, now, 0);
    },
    recover(owner, now, blameFrom) {
      let freed = 0;
      for (const [other, { leaseUntil }] of [...owners]) {
        if (other !== owner && leaseUntil <= now) freed += forget(other, now, 1, blameFrom);
      }
      return { freed };
    },
    held: (owner) => [...parts.heldBy(owner)].map(({ execution, epoch }) => ({ executionId: execution.id, epoch })),
    has: (owner) => owners.has(owner),
    first: () => owners.keys().next().value,
    tellCancel(owner, executionId) {
      owners.get(owner)?.cancelRequested.add(executionId);
    },
    cancelRequested: (owner) => takeAll(owners.get(owner)?.cancelRequested),
    tellSignal(owner, executionId) {
      owners.get(owner)?.signalled.add(executionId);
    },
    signalled: (owner) => takeAll(owners.get(owner)?.signalled),
  };
}

/** For one death. */
const BLAME = 1000;

interface Owner {
  leaseUntil: number;
  readonly cancelRequested: Set<string>;
  readonly signalled: Set<string>;
}

function takeAll(told: Set<string> | undefined): readonly string[] {
  if (!told || told.size === 0) return NONE;
  const ids = [...told];
  told.clear();
  return ids;
}

const NONE: readonly string[] = [];
