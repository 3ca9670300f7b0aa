/** Types as text, in the notation of TypeScript, and the parts of a type that are not known. */

import { membersOf, type RecordType, type ScalarType, type Type } from './type.ts';

const MAX_SHOWN_DEPTH = 4;
const MAX_FIELDS = 12;
const MAX_VALUES = 8;

/** Such as `{ id: string, kind: 'card' | 'cash', note?: string | null }`. `any`: the value is not known. */
export function typeText(type: Type, depth = 0): string {
  switch (type.kind) {
    case 'list': {
      const item = typeText(type.item, depth + 1);
      return item.includes(' | ') ? `(${item})[]` : `${item}[]`;
    }
    case 'record':
      return recordText(type, depth);
    case 'union': {
      const members = membersOf(type).filter((member) => !(member.kind === 'null' && member.unknown));
      return members.length === 0 ? 'never' : members.map((member) => typeText(member, depth)).join(' | ');
    }
    case 'string':
    case 'number':
    case 'boolean':
      return scalarText(type);
    default:
      return type.kind;
  }
}

function recordText({ fields, rest }: RecordType, depth: number): string {
  const isOpen = typeof rest === 'object';
  if (fields.size === 0 && isOpen) return rest.kind === 'any' ? 'object' : `{ [name]: ${typeText(rest, depth + 1)} }`;
  if (depth >= MAX_SHOWN_DEPTH) return '{ ... }';
  const shown = [...fields].slice(0, MAX_FIELDS).map(([name, { type, optional }]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : `'${name}'`;
    return `${key}${optional ? '?' : ''}: ${typeText(type, depth + 1)}`;
  });
  if (fields.size > MAX_FIELDS || isOpen) shown.push('...');
  return shown.length === 0 ? '{}' : `{ ${shown.join(', ')} }`;
}

function scalarText({ kind, values }: ScalarType): string {
  if (!values) return kind;
  if (values.length <= MAX_VALUES)
    return values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))).join(' | ');
  const numbers = values as readonly number[];
  const isRange = kind === 'number' && numbers.every((value, i) => i === 0 || value === (numbers[i - 1] ?? 0) + 1);
  return isRange ? `${numbers[0]}..${numbers.at(-1)}` : kind;
}

const MAX_UNKNOWN = 5;

/** The paths of the parts that may be anything, such as `.body` or `.results[]`; empty for the whole. */
export function unknownParts(type: Type, path = '', found: string[] = []): readonly string[] {
  if (found.length >= MAX_UNKNOWN) return found;
  for (const member of membersOf(type)) {
    if (member.kind === 'any') found.push(path);
    else if (member.kind === 'list') unknownParts(member.item, `${path}[]`, found);
    else if (member.kind === 'record') {
      if (member.fields.size === 0 && typeof member.rest === 'object' && member.rest.kind === 'any') found.push(path);
      for (const [name, { type: inner }] of member.fields) unknownParts(inner, `${path}.${name}`, found);
    }
  }
  return found;
}
