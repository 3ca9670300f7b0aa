/** The types of the functions that apply an arrow to the elements of a list. */

import {
  ANY,
  BOOLEAN,
  type ListType,
  listOf,
  membersOf,
  NUMBER,
  nullByAccident,
  recordOf,
  STRING,
  type Type,
  union,
} from './type.ts';
import { nullsOf } from './values-of-type.ts';

interface Applied {
  readonly list: Type;
  readonly item: Type;
  /** What the arrow gives. */
  readonly result: Type;
  /** The elements for which the arrow holds. */
  readonly held: Type;
}

export interface ArrowType {
  /** What the arrow must give, besides null. Absent: anything. */
  readonly kinds?: readonly ('string' | 'number' | 'boolean')[];
  of(applied: Applied): Type;
}

/** How many elements the list has at least. */
function leastOf(list: Type): number {
  const lists = membersOf(list).filter((member): member is ListType => member.kind === 'list');
  return lists.length === membersOf(list).length && lists.length > 0 ? Math.min(...lists.map(({ min }) => min)) : 0;
}

const truth: ArrowType = { of: () => BOOLEAN };

export const ARROW_TYPES: Readonly<Record<string, ArrowType>> = {
  map: { of: ({ list, result }) => listOf(result, leastOf(list)) },
  filter: { of: ({ held }) => listOf(held) },
  find: { of: ({ held }) => union([held, nullByAccident('no element may be found')]) },
  some: truth,
  every: truth,
  count: { of: () => NUMBER },
  sumBy: { kinds: ['number'], of: ({ result }) => union([NUMBER, ...nullsOf(result)]) },
  sortBy: { kinds: ['string', 'number'], of: ({ list, item }) => listOf(item, leastOf(list)) },
  groupBy: { kinds: ['string', 'number', 'boolean'], of: ({ item }) => recordOf([], listOf(item, 1)) },
  indexBy: { kinds: ['string', 'number', 'boolean'], of: ({ item }) => recordOf([], item) },
};

/** The type of `entries(object)`. */
export function entriesOf(object: Type): Type {
  const values = membersOf(object).flatMap((member): Type[] => {
    if (member.kind !== 'record') return member.kind === 'any' ? [ANY] : [];
    const fields = [...member.fields.values()].map(({ type }) => type);
    return member.rest === 'closed' ? fields : [...fields, typeof member.rest === 'object' ? member.rest : ANY];
  });
  return listOf(
    recordOf([
      ['key', { type: STRING, optional: false }],
      ['value', { type: values.length === 0 ? ANY : union(values), optional: false }],
    ]),
  );
}
