/** Reads the steps of a flow, each by the form of its verb, at every level. */

import type * as z from 'zod';
import type { StepDefinition } from '../model/ensemble.ts';
import { suggestName } from '../suggest-name.ts';
import { checkShape, type StandIns } from './check-shape.ts';
import type { DroppedParts } from './dropped-parts.ts';
import { sleepUntilSchema } from './flow-forms.ts';
import { STEP_FORMS } from './forms.ts';
import type { Path } from './problem.ts';
import { type Fields, type Place, pathKey, type Reader, readBehaviour, readSpelling } from './read-older-form.ts';
import { innerLists } from './step-lists.ts';
import { type Verb, verbOf } from './step-verb.ts';

/** What reading the parts of a definition collects beside problems. */
export interface PartReader extends Reader {
  readonly dropped: DroppedParts;
  /** Names that stand in parts which were wrong: what reads them is not at fault. */
  readonly brokenNames: Set<string>;
}

// With these a step whose own part is wrong still has its inner steps checked.
const STAND_INS: Partial<Record<Verb, StandIns>> = {
  if: { if: false, then: [] },
  foreach: { foreach: [], steps: [] },
  parallel: { parallel: [] },
  switch: { switch: false, cases: {} },
  while: { while: false, steps: [] },
  try: { try: [] },
  sleep: { sleep: 0 },
  wait: { wait: 'signal' },
};

/** The keys of a form whose lists hold steps; those under `cases` are found by their names. */
const LISTS: Partial<Record<Verb, readonly string[]>> = {
  if: ['then', 'else'],
  foreach: ['steps'],
  parallel: ['parallel'],
  switch: ['default'],
  while: ['steps'],
  try: ['try', 'catch', 'finally'],
};

/** Reads a list of steps; what is no list (and reported) has none. */
export function readSteps(entries: unknown, place: Place, reader: PartReader): StepDefinition[] {
  if (!Array.isArray(entries)) return [];
  return entries.map((entry, i) => {
    const at = { path: [...place.path, i], source: [...place.source, i] };
    const before = reader.dropped.size;
    const step = readStep(entry, at, reader);
    if (!step) noteNames(entry, reader.brokenNames);
    else if (reader.dropped.size > before) noteDroppedNames(entry as object, at.source, reader);
    // A step that can't be read keeps its place, as one that does nothing, so that the paths of the others hold.
    return step ?? { if: false, then: [] };
  });
}

function readStep(entry: unknown, place: Place, reader: PartReader): StepDefinition | undefined {
  const verb = verbOf(entry, place.source, reader.report);
  if (!verb) return undefined;
  const isInstant = verb === 'sleep' && isMap((entry as Fields).sleep);
  const schema = isInstant ? sleepUntilSchema : STEP_FORMS[verb];
  const standIns = isInstant ? { sleep: { until: 0 } } : STAND_INS[verb];
  const checked = checkShape<z.ZodType>(schema, entry, place.source, reader, standIns) as Fields | undefined;
  if (!checked) return undefined;
  const fields: Fields = { ...checked };
  const under = (key: string): Place => ({ path: [...place.path, key], source: [...place.source, key] });
  if (verb === 'agent' || verb === 'member') {
    readSpelling(fields, 'agent', ['member'], place, reader);
    readBehaviour(fields, place, reader);
    return fields.agent === undefined ? undefined : (fields as unknown as StepDefinition);
  }
  readSpelling(fields, 'condition', ['when'], place, reader);
  for (const key of LISTS[verb] ?? []) if (fields[key]) fields[key] = readSteps(fields[key], under(key), reader);
  if (verb === 'switch') fields.cases = readCases((entry as Fields).cases, fields.cases, under('cases'), reader);
  if (verb === 'until') {
    fields.sleep = { until: fields.until };
    delete fields.until;
    reader.spellings.set(pathKey([...place.path, 'sleep', 'until']), [...place.source, 'until']);
  }
  return fields as unknown as StepDefinition;
}

// A case that can't be read keeps its place too, as one without steps.
function readCases(written: unknown, checked: unknown, place: Place, reader: PartReader): Fields {
  const read = (name: string) => {
    const at = { path: [...place.path, name], source: [...place.source, name] };
    return [name, readSteps((checked as Fields)[name], at, reader)];
  };
  return Object.fromEntries(Object.keys(isMap(written) ? written : {}).map(read));
}

function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const NAME_KEYS = ['agent', 'member', 'ensemble', 'name', 'as'];

/** Notes every name that a part which could not be read mentions, at any depth. */
export function noteNames(part: unknown, names: Set<string>): void {
  // `- fetch` stands for the agent that was meant.
  if (typeof part === 'string') names.add(part);
  if (typeof part !== 'object' || part === null) return;
  noteOwnNames(part, names);
  for (const value of Object.values(part)) if (typeof value === 'object') noteNames(value, names);
}

// The step's own names, and those in the parts of it that were left out.
function noteDroppedNames(part: object, source: Path, reader: PartReader): void {
  noteOwnNames(part, reader.brokenNames);
  for (const [key, value] of Object.entries(part)) {
    if (reader.dropped.has([...source, key])) noteNames(value, reader.brokenNames);
    else if (key === 'cases') noteDroppedNames(value as object, [...source, key], reader);
  }
}

// What stands where a name is given, its key spelled rightly or nearly.
function noteOwnNames(part: object, names: Set<string>): void {
  for (const [key, value] of Object.entries(part)) {
    if (typeof value !== 'string') continue;
    if (NAME_KEYS.includes(key) || suggestName(key, NAME_KEYS) !== undefined) names.add(value);
  }
}

/** How many steps a list holds at all levels together. */
export function countSteps(entries: unknown): number {
  let count = 0;
  const waiting: unknown[] = [entries];
  while (waiting.length > 0) {
    const list = waiting.pop();
    if (!Array.isArray(list)) continue;
    count += list.length;
    for (const step of list) {
      if (typeof step !== 'object' || step === null) continue;
      for (const { steps } of innerLists(step)) waiting.push(steps);
    }
  }
  return count;
}
