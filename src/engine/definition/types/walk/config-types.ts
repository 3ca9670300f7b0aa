/** The types of a config: what each key takes, and where null would do harm. */

import type { ParsedPart } from '../../../expression/syntax/parsed-expressions.ts';
import type { NeededValue } from '../../../operation/operation.port.ts';
import type { Path } from '../../source/problem.ts';
import {
  ANY,
  intersects,
  isAccident,
  isNever,
  membersOf,
  NULL,
  nameOfType,
  type Type,
  union,
  whyNull,
} from '../type.ts';
import { type At, report, type Walker } from './walker.ts';

/** Refuses a whole `${...}` whose type the key of a config never takes. */
export function checkConfigValue(type: Type, config: Type, path: Path, at: At, walker: Walker): void {
  let expected: Type = config;
  for (const part of path) expected = memberType(expected, part);
  if (at.place.dead || expected.kind === 'any' || intersects(type, expected) || isNever(type)) return;
  report(walker, { path: at.path, message: `must be ${nameOfType(expected)}, and this is ${nameOfType(type)}` });
}

function memberType(type: Type, key: string | number): Type {
  return union(
    membersOf(type).flatMap((member): Type[] => {
      if (member.kind === 'record') {
        const field = member.fields.get(String(key));
        if (field) return field.optional ? [field.type, NULL] : [field.type];
        return [typeof member.rest === 'object' ? member.rest : ANY];
      }
      if (member.kind === 'list') return [member.item];
      return member.kind === 'any' ? [ANY] : [];
    }),
  );
}

/** Refuses an expression that may be null where null would do harm. */
export function checkNeeded(
  { what, accidentOnly }: NeededValue,
  text: string,
  { start, end }: ParsedPart,
  type: Type,
  at: At,
  walker: Walker,
): void {
  if (at.place.dead || (accidentOnly && !isAccident(type))) return;
  const why = whyNull(type);
  if (why === undefined) return;
  const source = text.slice(start, end).trim();
  const plain = /^[\w.[\]-]+$/.test(source) ? source : `(${source})`;
  const message =
    `may be null${why === '' ? '' : `: ${why}`}, and ${what}; ` +
    `write what then, as in \`required(${source}, 'no such ...')\` or \`${plain} ?? '...'\`, or rule it out with a condition`;
  report(walker, { path: at.path, message, offset: start, length: end - start });
}
