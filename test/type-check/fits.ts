/** Whether a value has a type. */

import { membersOf, type Scalar, type Type } from '../../src/engine/definition/types/type.ts';

export function fits(value: unknown, type: Type): boolean {
  return membersOf(type).some((member) => {
    switch (member.kind) {
      case 'any':
        return true;
      case 'null':
        return value === null;
      case 'list':
        return Array.isArray(value) && value.length >= member.min && value.every((item) => fits(item, member.item));
      case 'record': {
        if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
        const given = value as Record<string, unknown>;
        for (const [key, { type: inner, optional }] of member.fields)
          if (Object.hasOwn(given, key) ? !fits(given[key], inner) : !optional) return false;
        return Object.keys(given).every(
          (key) =>
            member.fields.has(key) ||
            member.rest === 'declared' ||
            (member.rest !== 'closed' && fits(given[key], member.rest)),
        );
      }
      case 'union':
        return false;
      default:
        return typeof value === member.kind && (!member.values || member.values.includes(value as Scalar));
    }
  });
}
