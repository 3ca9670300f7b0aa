/** Counts of ends in memory. */

import { groupEnds } from '../../../engine/events/tallies/end-line.ts';
import {
  addByKey,
  addTallies,
  DAY,
  DAYS_FOR,
  HOUR,
  HOURS_FOR,
  MINUTE,
  MINUTES_FOR,
  type StoredTally,
  tallyOf,
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

  const addTo = (length: number, added: readonly Omit<StoredTally, 'length'>[]) => {
    const keyed = added.map(
      ({ at, tally }) => [`${Math.floor(at / length) * length} ${tally.ensemble}`, tally] as const,
    );
    for (const [place, tally] of addByKey(keyed)) {
      const key = `${length} ${place}`;
      const known = tallies.get(key)?.tally;
      const sum = known ? addTallies([known, tally]) : tally;
      tallies.set(key, { length, at: Number(place.slice(0, place.indexOf(' '))), tally: sum });
    }
  };
  const addUp = () => {
    const taken = ends;
    ends = [];
    addTo(
      MINUTE,
      groupEnds(taken).map((group) => ({ at: group.firstAt, tally: tallyOf(group) })),
    );
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
      for (const [length, next, keep] of [
        [MINUTE, HOUR, MINUTES_FOR],
        [HOUR, DAY, HOURS_FOR],
      ] as const)
        addTo(next, take(length, Math.floor((now - keep) / next) * next));
      take(DAY, now - DAYS_FOR);
      return false;
    },
    read({ since, until, ensemble }) {
      const isIn = (at: number, of: string) => at >= since && at < until && (ensemble === undefined || of === ensemble);
      return {
        tallies: [...tallies.values()].filter(({ at, tally }) => isIn(at, tally.ensemble)),
        ends: groupEnds(ends).filter((group) => isIn(group.firstAt, group.ensemble)),
      };
    },
  };
}
