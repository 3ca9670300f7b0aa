/** The types of the functions of expressions: what each argument may be, and what the result is. */

import { suggestName } from '../../base/suggest-name.ts';
import { entriesOf } from './arrow-types.ts';
import {
  ANY,
  BOOLEAN,
  type ListType,
  listOf,
  mayBe,
  membersOf,
  NUMBER,
  namesOf,
  nullBecause,
  nullByAccident,
  type RecordType,
  recordOf,
  STRING,
  type Type,
  UNKNOWN_NULL,
  union,
  withoutNull,
} from './type.ts';

type Kind = 'string' | 'number' | 'boolean' | 'list' | 'record';

export interface Signature {
  /** What each argument may be besides null; the last entry stands for all further arguments. `null`: anything. */
  readonly takes: readonly (readonly Kind[] | null)[];
  /** Whether null as the first argument gives null. */
  readonly passesNull?: boolean;
  returns(args: readonly Type[]): Type;
  /** What is wrong with the arguments, besides their kinds. */
  wrong?(args: readonly Type[]): WrongArgument | undefined;
}

interface WrongArgument {
  readonly argument: number;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

const TEXT: readonly Kind[] = ['string'];
const LIST: readonly Kind[] = ['list'];
const NUM: readonly Kind[] = ['number'];
const RECORD: readonly Kind[] = ['record'];
const SEQUENCE: readonly Kind[] = ['list', 'string'];
const INSTANT: readonly Kind[] = ['number', 'string'];

const always =
  (type: Type): Signature['returns'] =>
  () =>
    type;

function of(takes: Signature['takes'], type: Type | Signature['returns'], passesNull = false): Signature {
  return { takes, returns: typeof type === 'function' ? type : always(type), passesNull };
}
const value = (takes: Signature['takes'], type: Type | Signature['returns']) => of(takes, type, true);

/** The items of the lists that an argument may be; text counts as a list of text. */
export function itemOf(type: Type | undefined): Type {
  const items = membersOf(type ?? ANY).flatMap((member): Type[] => {
    if (member.kind === 'list') return [member.item];
    if (member.kind === 'string') return [STRING];
    return member.kind === 'any' ? [ANY] : [];
  });
  return items.length === 0 ? ANY : union(items);
}

function element([type = ANY]: readonly Type[]): Type {
  const lists = membersOf(type).filter((member): member is ListType => member.kind === 'list');
  const isFull = lists.length > 0 && lists.every(({ min }) => min > 0) && !mayBe(type, ['string']);
  return isFull ? itemOf(type) : union([itemOf(type), nullByAccident('the list may be empty')]);
}

function sameSequence([type = ANY]: readonly Type[]): Type {
  return union(
    membersOf(type).flatMap((one): Type[] =>
      one.kind === 'list' ? [listOf(one.item)] : one.kind === 'string' ? [STRING] : one.kind === 'any' ? [ANY] : [],
    ),
  );
}

function keptSequence([type = ANY]: readonly Type[]): Type {
  return union(membersOf(type).filter(({ kind }) => kind === 'list' || kind === 'any'));
}

function merged(args: readonly Type[]): Type {
  const records = args.map((arg) => withoutNull(arg));
  const fields = new Map<string, { type: Type; optional: boolean }>();
  let rest: RecordType['rest'] = 'closed';
  for (const [i, record] of records.entries()) {
    if (record.kind !== 'record') return recordOf([], ANY);
    // What may be null, or missing, may leave the fields of the objects before it.
    const sure = !mayBe(args[i] as Type, ['null']);
    if (typeof record.rest === 'object' || record.rest === 'declared') return recordOf([], ANY);
    for (const [name, { type, optional }] of record.fields) {
      const before = fields.get(name);
      if (!optional && sure) fields.set(name, { type, optional: false });
      else
        fields.set(name, {
          type: before ? union([before.type, type]) : type,
          optional: before ? before.optional : true,
        });
    }
    rest = 'closed';
  }
  return recordOf(fields, rest);
}

/** The names that arguments after the first are; undefined if they are not all known. */
function namesIn(args: readonly Type[]): readonly string[] | undefined {
  const names: string[] = [];
  for (const type of args.slice(1)) {
    const [only] = type.kind === 'string' && type.values?.length === 1 ? type.values : [];
    if (typeof only !== 'string') return undefined;
    names.push(only);
  }
  return names;
}

function keepFields(args: readonly Type[], keepsNamed: boolean): Type {
  const [object = ANY] = args;
  const names = namesIn(args);
  if (object.kind !== 'record' || !names) return recordOf([], ANY);
  const fields = [...object.fields].filter(([name]) => names.includes(name) === keepsNamed);
  // A field that is not named in the type may be picked too.
  const rest = typeof object.rest === 'object' && keepsNamed ? object.rest : keepsNamed ? 'closed' : object.rest;
  return recordOf(fields, rest);
}

function unknownField(args: readonly Type[]): WrongArgument | undefined {
  const object = withoutNull(args[0] ?? ANY);
  if (object.kind !== 'record' || typeof object.rest === 'object') return undefined;
  const known = [...object.fields.keys()];
  const names = namesIn(args) ?? [];
  const at = names.findIndex((name) => !known.includes(name));
  if (at < 0) return undefined;
  const name = names[at] as string;
  return {
    argument: at + 1,
    message: `there is no \`${name}\` in it, which has ${namesOf(known)}`,
    suggestion: suggestName(name, known),
  };
}

function valueOfEntries(list: Type | undefined): Type {
  return union(
    membersOf(itemOf(list)).map((item) => (item.kind === 'record' ? (item.fields.get('value')?.type ?? ANY) : ANY)),
  );
}

function fallback([first = ANY, second = ANY]: readonly Type[]): Type {
  return mayBe(first, ['null']) ? union([withoutNull(first), second]) : first;
}

/** The result over one list, or over the arguments: one null makes it null. */
function folded(args: readonly Type[], emptyIsNull: boolean): Type {
  const [only] = args;
  const isList = args.length === 1 && only !== undefined && mayBe(only, ['list']);
  const values = isList ? [itemOf(only), ...membersOf(only).filter(({ kind }) => kind !== 'list')] : args;
  const nulls = values.flatMap((type) => membersOf(type).filter(({ kind }) => kind === 'null'));
  const unknown = values.some((type) => mayBe(type, [])) ? [UNKNOWN_NULL] : [];
  const lists = isList ? membersOf(only).filter((member): member is ListType => member.kind === 'list') : [];
  const empty = emptyIsNull && lists.some(({ min }) => min === 0) ? [nullByAccident('the list may be empty')] : [];
  return union([NUMBER, ...nulls, ...empty, ...unknown]);
}

export const SIGNATURES: Readonly<Record<string, Signature>> = {
  random: of([], NUMBER),
  now: of([], NUMBER),
  uuid: of([], STRING),
  signalUrl: of([TEXT, null, null], STRING),
  length: of([['string', 'list', 'record']], NUMBER),
  lower: value([TEXT], STRING),
  upper: value([TEXT], STRING),
  trim: value([TEXT], STRING),
  contains: of([SEQUENCE, null], BOOLEAN),
  startsWith: of([TEXT, TEXT], BOOLEAN),
  endsWith: of([TEXT, TEXT], BOOLEAN),
  replace: value([TEXT, TEXT, TEXT], STRING),
  split: value([TEXT, TEXT], listOf(STRING)),
  join: value([LIST, TEXT], STRING),
  keys: value([RECORD], listOf(STRING)),
  values: value([RECORD], listOf(ANY)),
  first: value([SEQUENCE], element),
  last: value([SEQUENCE], element),
  slice: value([SEQUENCE, NUM, NUM], sameSequence),
  compact: value([LIST], ([list]) => listOf(withoutNull(itemOf(list)))),
  sort: value([LIST, TEXT, TEXT], keptSequence),
  unique: value([LIST], ([list]) => listOf(itemOf(list))),
  flatten: value([LIST, NUM], listOf(ANY)),
  merge: of([RECORD], merged),
  entries: value([RECORD], ([object = ANY]) => entriesOf(object)),
  fromEntries: value([LIST], ([list]) => recordOf([], valueOfEntries(list))),
  pick: { ...value([RECORD, ['string', 'list']], (args) => keepFields(args, true)), wrong: unknownField },
  omit: { ...value([RECORD, ['string', 'list']], (args) => keepFields(args, false)), wrong: unknownField },
  reverse: value([LIST], keptSequence),
  append: value([LIST, null], ([list, ...more]) => listOf(union([itemOf(list), ...more]), more.length)),
  chunk: value([LIST, NUM], ([list]) => listOf(listOf(itemOf(list), 1))),
  range: of([NUM], listOf(NUMBER)),
  default: of([null, null], fallback),
  required: of([null, TEXT], ([value = ANY]) => withoutNull(value)),
  string: of([null], STRING),
  boolean: of([null], BOOLEAN),
  json: of([null, NUM], STRING),
  parseJson: value([TEXT], ANY),
  number: value([['string', 'number', 'boolean']], ([type = ANY]) =>
    mayBe(type, ['string']) ? union([NUMBER, nullBecause('the text may not be a number')]) : NUMBER,
  ),
  round: value([NUM, NUM], NUMBER),
  floor: value([NUM, NUM], NUMBER),
  ceil: value([NUM, NUM], NUMBER),
  abs: value([NUM], NUMBER),
  min: of([['number', 'list']], (args) => folded(args, true)),
  max: of([['number', 'list']], (args) => folded(args, true)),
  sum: of([['number', 'list']], (args) => folded(args, false)),
  date: value([INSTANT, TEXT], STRING),
  addTime: value([INSTANT, NUM, TEXT], ([, amount = ANY]) =>
    mayBe(amount, ['null']) ? union([STRING, UNKNOWN_NULL]) : STRING,
  ),
  base64: value([TEXT], STRING),
  sha256: value([TEXT], STRING),
  hmac: value([TEXT, TEXT], STRING),
  urlEncode: value([['string', 'number', 'boolean']], STRING),
};
