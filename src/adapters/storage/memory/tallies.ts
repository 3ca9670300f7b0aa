/** Counts of ends in memory. */

import { groupEnds, groupEndsIn, MINUTE } from '../../../engine/events/tallies/end-line.ts';
import {
  addByPeriod,
  addTallies,
  agesAt,
  DAY,
  DAYS_FOR,
  type DatedTally,
  type StoredTally,
  talliesOf,
} from '../../../engine/events/tallies/tally.ts';
import type { TallyStore } from '../../../engine/events/tallies/tally-store.port.ts';

/** Beyond this number, ends are added up. */
const MAX_ENDS = 1000;

export interface MemoryTallies extends TallyStore {
  /** @param line - as `lineOfEnd` writes it */
  add(line: string): void;
}

export function memoryTallies(): MemoryTallies {
  let ends: string[] = [];
  const tallies = new Map<string, StoredTally>();

  const addTo = (length: number, added: readonly DatedTally[]) => {
    for (const one of addByPeriod(length, added)) {
      const key = `${length} ${one.at} ${one.tally.ensemble}`;
      const known = tallies.get(key);
      tallies.set(key, known ? { ...one, tally: addTallies([known.tally, one.tally]) } : one);
    }
  };
  const addUp = () => {
    const taken = ends;
    ends = [];
    addTo(MINUTE, talliesOf(groupEnds(taken)));
  };
  const take = (length: number, before: number): readonly StoredTally[] => {
    const old = [...tallies].filter(([, one]) => one.length === length && one.at < before);
    for (const [key] of old) tallies.delete(key);
    return old.map(([, one]) => one);
  };

  return {
    add(line) {
      if (ends.push(line) >= MAX_ENDS) addUp();
    },
    fold(now) {
      addUp();
      for (const { length, next, before } of agesAt(now)) addTo(next, take(length, before));
      take(DAY, now - DAYS_FOR);
      return false;
    },
    read(query) {
      const { since, until, ensemble } = query;
      return {
        tallies: [...tallies.values()].filter(
          ({ at, tally }) => at >= since && at < until && (ensemble === undefined || tally.ensemble === ensemble),
        ),
        ends: groupEndsIn(ends, query),
      };
    },
  };
}
