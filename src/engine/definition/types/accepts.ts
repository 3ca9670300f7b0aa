/** A declared type and what is known without it: whether the one holds all values of the other, and both together. */

import { quoted } from '../../base/wording.ts';
import { ANY, intersects, listOf, membersOf, nameOfType, type RecordType, recordOf, type Type } from './type.ts';

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

/** The type of a value of which both types are known: what is declared, and the fields that it leaves out. */
export function refine(known: Type, declared: Type): Type {
  if (known.kind === 'list' && declared.kind === 'list')
    return listOf(refine(known.item, declared.item), Math.max(known.min, declared.min));
  if (declared.kind === 'any' || isAnyObject(declared)) return known;
  if (known.kind === 'any' || isAnyObject(known)) return declared;
  if (known.kind !== 'record' || declared.kind !== 'record')
    // The other one may say more of its fields.
    return declared.kind === 'record' ? recordOf(declared.fields, ANY) : declared;
  const fields = new Map(declared.fields);
  for (const [name, field] of known.fields) {
    const own = declared.fields.get(name);
    const type = own ? refine(field.type, own.type) : field.type;
    fields.set(name, { type, optional: field.optional && (own?.optional ?? true) });
  }
  const open = [known.rest, declared.rest].find((rest) => typeof rest === 'object');
  return recordOf(fields, open ?? (known.rest === 'closed' ? declared.rest : known.rest));
}

/** `type: object` alone. */
function isAnyObject(type: Type): boolean {
  return type.kind === 'record' && type.fields.size === 0 && typeof type.rest === 'object' && type.rest.kind === 'any';
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
