/**
 * The types of expressions: what a value can be, as far as the definition says. A type is plain, frozen data of bounded size.
 *
 * `any` says nothing: it never leads to a problem. A union may hold `any` next to `null`: then the value may be anything, and there is a
 * known reason why it may be null.
 */

export type Scalar = string | number | boolean;

export interface AnyType {
  readonly kind: 'any';
}
export interface NullType {
  readonly kind: 'null';
  /** Why the value may be null, for messages: "`lookup` may be skipped". */
  readonly why?: string | undefined;
  /** Nothing says that the value is null: only that it may be. No problem follows from it. */
  readonly unknown?: true;
  /** Nobody asked for it: a step was skipped, a list is empty. Otherwise the definition says that it may be null, as for an optional input. */
  readonly accident?: true;
}
export interface ScalarType {
  readonly kind: 'string' | 'number' | 'boolean';
  /** All values that are possible; undefined: any of the kind. */
  readonly values?: readonly Scalar[] | undefined;
  /** A value that the schema accepts, where its keywords say more than the kind. */
  readonly example?: Scalar | undefined;
  /** Of a number: the list in the same record whose elements it counts. */
  readonly countOf?: string | undefined;
}
export interface ListType extends Size {
  readonly kind: 'list';
  readonly item: Type;
  /** The list has at least this many elements. */
  readonly min: number;
}
export interface Field {
  readonly type: Type;
  /** Whether the field may be missing. A missing field reads as null. */
  readonly optional: boolean;
}
export interface RecordType extends Size {
  readonly kind: 'record';
  readonly fields: ReadonlyMap<string, Field>;
  /**
   * `closed`: there are no other fields. `declared`: others may exist, but a definition must not read them, as with undeclared inputs.
   * Otherwise the type of every other field.
   */
  readonly rest: 'closed' | 'declared' | Type;
}
/** Two or more types of different kinds, or several records. */
export interface UnionType extends Size {
  readonly kind: 'union';
  readonly of: readonly Type[];
}
export type Type = AnyType | NullType | ScalarType | ListType | RecordType | UnionType;

export const ANY: AnyType = { kind: 'any' };
export const NULL: NullType = { kind: 'null' };
/** The null that a value of an unknown type may be. */
export const UNKNOWN_NULL: NullType = { kind: 'null', unknown: true };
export const STRING: ScalarType = { kind: 'string' };
export const NUMBER: ScalarType = { kind: 'number' };
export const BOOLEAN: ScalarType = { kind: 'boolean' };

/** A type with more parts than this becomes `any`. */
export const MAX_PARTS_OF_TYPE = 400;
const MAX_RECORDS = 8;
const MAX_VALUES = 128;
const MAX_TYPE_DEPTH = 12;

export function nullBecause(why: string): NullType {
  return { kind: 'null', why };
}

/** A null that the author of a definition may not have thought of. */
export function nullByAccident(why: string): NullType {
  return { kind: 'null', why, accident: true };
}

export function literal(value: Scalar | null): Type {
  if (value === null) return NULL;
  return { kind: typeof value as ScalarType['kind'], values: [value] };
}

export function oneOfValues(kind: ScalarType['kind'], values: readonly Scalar[]): ScalarType {
  return values.length > MAX_VALUES ? { kind } : { kind, values };
}

export function listOf(item: Type, min = 0): Type {
  const size = sizeWith([item]);
  return isSmall(size) ? { kind: 'list', item, min, ...size } : ANY;
}

export function recordOf(fields: Iterable<readonly [string, Field]>, rest: RecordType['rest'] = 'closed'): Type {
  const map = new Map(fields);
  const size = sizeWith(typesIn(map, rest));
  return isSmall(size) ? { kind: 'record', fields: map, rest, ...size } : ANY;
}

function* typesIn(fields: ReadonlyMap<string, Field>, rest: RecordType['rest']): Iterable<Type> {
  for (const { type } of fields.values()) yield type;
  if (typeof rest === 'object') yield rest;
}

export function required(type: Type): Field {
  return { type, optional: false };
}

/** The parts of the types inside a type, counted when it is made. */
interface Size {
  readonly parts: number;
  readonly depth: number;
}

export function sizeOf(type: Type): Size {
  return 'parts' in type ? type : SMALL;
}
const SMALL: Size = { parts: 1, depth: 0 };

function sizeWith(types: Iterable<Type>): Size {
  let parts = 1;
  let depth = 0;
  for (const type of types) {
    const size = sizeOf(type);
    parts += size.parts;
    if (size.depth > depth) depth = size.depth;
  }
  return { parts, depth: depth + 1 };
}

function isSmall({ parts, depth }: Size): boolean {
  return parts <= MAX_PARTS_OF_TYPE && depth <= MAX_TYPE_DEPTH;
}

/** The members of a type, of which a value has one. */
export function membersOf(type: Type): readonly Type[] {
  return type.kind === 'union' ? type.of : [type];
}

/** The smallest type that holds all values of the given types. */
export function union(types: readonly Type[]): Type {
  const [first, second] = types;
  if (first && (types.length === 1 || (types.length === 2 && first === second))) return first;
  let any = false;
  let nothing: NullType | undefined;
  const scalars = new Map<string, ScalarType>();
  let list: ListType | undefined;
  const records: RecordType[] = [];
  for (const type of types) {
    for (const member of membersOf(type)) {
      switch (member.kind) {
        case 'any':
          any = true;
          break;
        case 'null':
          if (!nothing || rankOf(member) > rankOf(nothing)) nothing = member;
          break;
        case 'list':
          list = list ? joinLists(list, member) : member;
          break;
        case 'record':
          if (!records.includes(member)) records.push(member);
          break;
        case 'union':
          break;
        default:
          scalars.set(member.kind, joinScalars(scalars.get(member.kind), member));
      }
    }
  }
  const rest: Type[] =
    any || records.length > MAX_RECORDS ? [ANY] : [...scalars.values(), ...(list ? [list] : []), ...records];
  const all = nothing ? [...rest, nothing] : rest;
  const [only] = all;
  if (all.length === 1 && only) return only;
  const size = sizeWith(all);
  return isSmall(size) ? { kind: 'union', of: all, ...size } : ANY;
}

/** Of two reasons, a message names the one that says more. */
function rankOf({ why, unknown, accident }: NullType): number {
  if (unknown) return 0;
  return accident ? 3 : why === undefined ? 1 : 2;
}

function joinLists(a: ListType, b: ListType): ListType {
  if (a.item === b.item && a.min <= b.min) return a;
  const item = union([a.item, b.item]);
  return { kind: 'list', item, min: Math.min(a.min, b.min), ...sizeWith([item]) };
}

function joinScalars(a: ScalarType | undefined, b: ScalarType): ScalarType {
  if (!a || a === b) return b;
  if (!a.values || !b.values) return { kind: a.kind };
  const values = [...new Set([...a.values, ...b.values])];
  if (a.kind === 'boolean' && values.length === 2) return BOOLEAN;
  return oneOfValues(a.kind, values);
}

/** The type without the members that a test refuses. */
export function without(type: Type, refuses: (member: Type) => boolean): Type {
  const all = membersOf(type);
  const left = all.filter((member) => !refuses(member));
  return left.length === all.length ? type : union(left);
}

export function withoutNull(type: Type): Type {
  return without(type, ({ kind }) => kind === 'null');
}

/** Why a value may be null; undefined if that is not known. `''` stands for no particular reason. */
export function whyNull(type: Type): string | undefined {
  const found = membersOf(type).find((member): member is NullType => member.kind === 'null' && !member.unknown);
  return found && (found.why ?? '');
}

/** Whether a value may be null by accident. */
export function isAccident(type: Type): boolean {
  return membersOf(type).some((member) => member.kind === 'null' && member.accident === true);
}

export function isNever(type: Type): boolean {
  return type.kind === 'union' && type.of.length === 0;
}

export function mayBe(type: Type, kinds: readonly Type['kind'][]): boolean {
  return membersOf(type).some(({ kind }) => kind === 'any' || kinds.includes(kind));
}

/** Whether a value can have both types. */
export function intersects(a: Type, b: Type): boolean {
  return membersOf(a).some((one) => membersOf(b).some((other) => memberIntersects(one, other)));
}

function memberIntersects(a: Type, b: Type): boolean {
  if (a.kind === 'any' || b.kind === 'any') return true;
  if (a.kind !== b.kind) return false;
  if ('values' in a && 'values' in b && a.values && b.values) {
    const { values } = b;
    return a.values.some((value) => values.includes(value));
  }
  return true;
}

/** What a message says about a type. */
export function nameOfType(type: Type, depth = 0): string {
  switch (type.kind) {
    case 'any':
      return 'any value';
    case 'null':
      return 'null';
    case 'list':
      return depth > 1 || type.item.kind === 'any' ? 'a list' : `a list of ${nameOfType(type.item, depth + 1)}`;
    case 'record':
      return depth > 1 || type.fields.size === 0 ? 'an object' : `an object with ${namesOf([...type.fields.keys()])}`;
    case 'union':
      return type.of.length === 0 ? 'nothing' : type.of.map((member) => nameOfType(member, depth + 1)).join(' or ');
    default:
      return scalarName(type);
  }
}

function scalarName({ kind, values }: ScalarType): string {
  const text = { string: 'text', number: 'a number', boolean: 'true or false' }[kind];
  if (!values) return text;
  if (values.length > 6) return `${text} of ${values.length} values`;
  return values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))).join(' or ');
}

const MAX_SHOWN = 12;

export function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, MAX_SHOWN).map((name) => `\`${name}\``);
  if (names.length > MAX_SHOWN) shown.push(`${names.length - MAX_SHOWN} more`);
  return shown.length < 2 ? (shown[0] ?? 'no fields') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
