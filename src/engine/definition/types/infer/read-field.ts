/** The type of a field, an element or a character of a value. */

import { suggestName } from '../../../base/suggest-name.ts';
import type { MemberNode, Node } from '../../../expression/syntax/ast.ts';
import {
  ANY,
  mayBe,
  membersOf,
  NULL,
  NUMBER,
  nameOfType,
  namesOf,
  nullBecause,
  nullByAccident,
  STRING,
  type Type,
  union,
  whyNull,
  withoutNull,
} from '../type.ts';
import { type InferContext, impossible } from './infer-context.ts';

export type Link = MemberNode['links'][number];

export function readLink(
  type: Type,
  key: string | number | Node,
  link: Link,
  context: InferContext,
  whole: Node,
): Type {
  if (typeof key === 'object') {
    const computed = context.infer(key, context);
    if (!mayBe(computed, ['string', 'number', 'null']))
      impossible(context, key, `a key must be text or an integer, and this is ${nameOfType(computed)}`);
    return readComputed(type, computed, link, context, whole);
  }
  const reads = membersOf(type).map((member) => readMember(member, key));
  const found = reads.filter((read) => read !== undefined);
  // What the value is read from may be null: this is the reason that a message names.
  if (found.length > 1) found.sort((a, b) => Number(b.kind === 'null') - Number(a.kind === 'null'));
  if (found.length === reads.length) return union(found);
  const isOnlyNull = membersOf(type).every(({ kind }) => kind === 'null');
  // One member that has the field is enough: which of them it is, only the execution knows.
  const others = membersOf(type).some((member, i) => member.kind !== 'null' && reads[i] !== undefined);
  if (!others && !isOnlyNull) reportUnknown(type, key, link, context, whole);
  return union([...found, NULL]);
}

function readComputed(type: Type, key: Type, link: Link, context: InferContext, whole: Node): Type {
  if (key.kind === 'string' && key.values?.length === 1)
    return readLink(type, key.values[0] as string, link, context, whole);
  return union(
    membersOf(type).map((member): Type => {
      switch (member.kind) {
        case 'list':
          return union([member.item, nullByAccident('the list may have no such element')]);
        case 'record':
          return member.rest === 'closed'
            ? union([
                ...[...member.fields.values()].map((field) => field.type),
                nullBecause('the object may have no such key'),
              ])
            : ANY;
        case 'string':
          return union([STRING, NUMBER, NULL]);
        case 'any':
          return ANY;
        default:
          return NULL;
      }
    }),
  );
}

/** @returns undefined if no value of the type has the key */
function readMember(type: Type, key: string | number): Type | undefined {
  switch (type.kind) {
    case 'any':
      return ANY;
    case 'null':
      return type;
    case 'list': {
      if (key === 'length') return NUMBER;
      const index = typeof key === 'number' ? key : /^\d+$/.test(key) ? Number(key) : undefined;
      if (index === undefined) return undefined;
      if (index < type.min) return type.item;
      return union([
        type.item,
        nullByAccident(index === 0 ? 'the list may be empty' : `the list may have fewer than ${index + 1} elements`),
      ]);
    }
    case 'record': {
      const field = type.fields.get(String(key));
      if (field)
        return field.optional && whyNull(field.type) === undefined
          ? union([field.type, nullBecause(`\`${key}\` may be missing`)])
          : field.type;
      if (type.rest === 'closed' || type.rest === 'declared') return undefined;
      return type.rest.kind === 'any' ? ANY : union([type.rest, nullBecause(`\`${key}\` may be missing`)]);
    }
    case 'string':
      if (key === 'length') return NUMBER;
      return typeof key === 'number' ? union([STRING, nullBecause('the text may be shorter')]) : undefined;
    default:
      return undefined;
  }
}

function reportUnknown(type: Type, key: string | number, link: Link, context: InferContext, whole: Node): void {
  const left = context.text.slice(whole.index, link.index).replace(/[.[]\s*$/, '');
  const fields = new Set(
    membersOf(type).flatMap((member) => (member.kind === 'record' ? [...member.fields.keys()] : [])),
  );
  const inner = [...fields].find((name) => {
    const read = readLinkQuietly(type, name);
    return (
      read !== undefined &&
      read.kind !== 'any' &&
      membersOf(read).some((m) => m.kind === 'record' && m.fields.has(String(key)))
    );
  });
  const suggestion = inner !== undefined ? `${left}.${inner}.${key}` : suggestName(String(key), fields);
  const has =
    fields.size > 0
      ? `which has ${namesOf([...fields])}`
      : `which is ${nameOfType(withoutNull(type))}${mayBe(type, ['list']) && typeof key === 'string' ? `; read an element, such as \`${left}[0].${key}\`` : ''}`;
  impossible(
    context,
    { index: whole.index, end: link.end },
    `there is no \`${key}\` in \`${left}\`, ${has}`,
    suggestion,
  );
}

function readLinkQuietly(type: Type, key: string): Type | undefined {
  const reads = membersOf(type).flatMap((member) => readMember(member, key) ?? []);
  return reads.length === 0 ? undefined : union(reads);
}
