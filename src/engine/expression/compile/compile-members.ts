/** Compiles member access to closures. */

import type { Json } from '../../base/json/json.ts';
import type { Evaluate, Evaluation } from '../evaluation.ts';
import { failureAt, type Site } from '../evaluation-problem.ts';
import { readComputed, readIndex, readKey } from '../syntax/read-member.ts';

/** One access: a static key, or a closure that computes the key. */
interface MemberKey<E extends Evaluation> {
  readonly key: string | number | Evaluate<E>;
  readonly index: number;
}

// With more keys than this, one closure reads all keys in a loop, so that a long chain needs no deep stack.
const NESTED_KEYS = 3;

export function compileMembers<E extends Evaluation>(
  object: Evaluate<E>,
  keys: readonly MemberKey<E>[],
  site: Site,
): Evaluate<E> {
  if (keys.length > NESTED_KEYS) {
    const readers = keys.map((key) => compileReader(key, site));
    return (evaluation) => {
      let value = object(evaluation);
      for (const read of readers) value = read(value, evaluation);
      return value;
    };
  }
  let evaluate = object;
  for (const member of keys) evaluate = compileAccess(evaluate, member, site);
  return evaluate;
}

function compileAccess<E extends Evaluation>(object: Evaluate<E>, member: MemberKey<E>, site: Site): Evaluate<E> {
  const { key } = member;
  if (typeof key === 'string') return (evaluation) => readKey(object(evaluation), key);
  if (typeof key === 'number') return (evaluation) => readIndex(object(evaluation), key);
  const read = compileReader(member, site);
  return (evaluation) => read(object(evaluation), evaluation);
}

function compileReader<E extends Evaluation>(
  { key, index }: MemberKey<E>,
  site: Site,
): (value: Json, evaluation: E) => Json {
  if (typeof key === 'string') return (value) => readKey(value, key);
  if (typeof key === 'number') return (value) => readIndex(value, key);
  return (value, evaluation) => {
    const computed = key(evaluation);
    try {
      return readComputed(value, computed);
    } catch (error) {
      throw failureAt(site, index, error);
    }
  };
}
