/** Whether a declared type holds all values of another type. */

import { quoted } from '../../base/wording.ts';
import { intersects, membersOf, nameOfType, type RecordType, type Type } from './type.ts';

/** A part of a type that a wider type does not hold. */
export interface Misfit {
  /** The path of the part; empty for the whole. `[]` stands for the elements of a list. */
  readonly path: string;
  readonly message: string;
}

/** @returns the first part of `given` that `wanted` does not hold. `any` fits everywhere, on both sides */
export function findMisfit(wanted: Type, given: Type, path = ''): Misfit | undefined {
  for (const member of membersOf(given)) {
    const found = ofMember(wanted, member, path);
    if (found) return found;
  }
  return undefined;
}

function ofMember(wanted: Type, given: Type, path: string): Misfit | undefined {
  if (given.kind === 'any' || (given.kind === 'null' && given.unknown)) return undefined;
  const same = membersOf(wanted).filter(({ kind }) => kind === given.kind || kind === 'any');
  const wrong = { path, message: `is ${nameOfType(given)}, where ${nameOfType(wanted)} is declared` };
  if (same.length === 0) return wrong;
  const found = same.map((one) => ofKind(one, given, path));
  return found.includes(undefined) ? undefined : found.length === 1 ? found[0] : wrong;
}

function ofKind(wanted: Type, given: Type, path: string): Misfit | undefined {
  if (wanted.kind === 'list' && given.kind === 'list') return findMisfit(wanted.item, given.item, `${path}[]`);
  if (wanted.kind === 'record' && given.kind === 'record') return ofRecord(wanted, given, path);
  const isWide = !('values' in wanted) || wanted.values === undefined;
  if (isWide || ('values' in given && given.values?.every((value) => wanted.values?.includes(value)))) return undefined;
  const what = intersects(wanted, given) ? 'may be' : 'is';
  return { path, message: `${what} ${nameOfType(given)}, where ${nameOfType(wanted)} is declared` };
}

function ofRecord(wanted: RecordType, given: RecordType, path: string): Misfit | undefined {
  const at = (name: string) => (path === '' ? name : `${path}.${name}`);
  for (const [name, { type, optional }] of wanted.fields) {
    const own = given.fields.get(name);
    const found = own && findMisfit(type, own.type, at(name));
    if (found) return found;
    if (optional || (own && !own.optional) || typeof given.rest === 'object') continue;
    return { path: at(name), message: own ? 'may be missing, and is required' : 'is required, and is never there' };
  }
  if (wanted.rest !== 'closed') return undefined;
  const extra = [...given.fields.keys()].find((name) => !wanted.fields.has(name));
  return extra === undefined ? undefined : { path, message: `may have ${quoted(extra)}, which is not declared` };
}
