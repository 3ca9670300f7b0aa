/** Reads the steps of a flow at every level, each by the form of its verb. */

import type * as z from 'zod/mini';
import { suggestName } from '../../base/suggest-name.ts';
import type { StepDefinition } from '../../ensemble/ensemble.ts';
import { innerLists, listsOf } from '../../ensemble/inner-lists.ts';
import { checkShape } from '../forms/check-shape.ts';
import type { DroppedParts } from '../forms/dropped-parts.ts';
import { type StepLanguage, sleepUntilSchema } from '../forms/flow-forms.ts';
import { STEP_FORMS } from '../forms/forms.ts';
import { verbOf } from '../forms/step-verb.ts';
import type { Path } from '../source/problem.ts';
import { type Fields, type Place, pathKey, type Reader, readBehaviour, readSpelling } from './read-older-form.ts';

/** What is collected while the parts of a definition are read, besides problems. */
export interface PartReader extends Reader {
  readonly dropped: DroppedParts;
  /** The names in wrong parts. An expression that reads such a name is not reported. */
  readonly brokenNames: Set<string>;
}

/** Reads a list of steps. A value that is not a list is reported already and gives no steps. */
export function readSteps(entries: unknown, place: Place, reader: PartReader): StepDefinition[] {
  if (!Array.isArray(entries)) return [];
  return entries.map((entry, i) => {
    const at = { path: [...place.path, i], source: [...place.source, i] };
    const before = reader.dropped.size;
    const step = readStep(entry, at, reader);
    if (!step) addNames(entry, reader.brokenNames);
    else if (reader.dropped.size > before) addDroppedNames(entry as object, at.source, reader);
    // A step that does nothing replaces a step that can't be read, so that the paths of the other steps stay right.
    return step ?? { if: false, then: [] };
  });
}

function readStep(entry: unknown, place: Place, reader: PartReader): StepDefinition | undefined {
  const verb = verbOf(entry, place.source, reader.report);
  if (!verb) return undefined;
  const isInstant = verb === 'sleep' && isMap((entry as Fields).sleep);
  const language: StepLanguage = STEP_FORMS[verb];
  const schema = isInstant ? sleepUntilSchema() : language.schema();
  const standIns = isInstant ? { sleep: { until: 0 } } : language.standIns;
  const checked = checkShape<z.ZodMiniType>(schema, entry, place.source, reader, standIns) as Fields | undefined;
  if (!checked) return undefined;
  const fields: Fields = { ...checked };
  const under = (key: string): Place => ({ path: [...place.path, key], source: [...place.source, key] });
  if (verb === 'agent' || verb === 'member') {
    readSpelling(fields, 'agent', ['member'], place, reader);
    readBehaviour(fields, place, reader);
    return fields.agent === undefined ? undefined : (fields as unknown as StepDefinition);
  }
  readSpelling(fields, 'condition', ['when'], place, reader);
  const { lists, named } = listsOf(verb);
  for (const key of lists) if (fields[key]) fields[key] = readSteps(fields[key], under(key), reader);
  if (named !== undefined) fields[named] = readNamed((entry as Fields)[named], fields[named], under(named), reader);
  if (verb === 'until') {
    fields.sleep = { until: fields.until };
    delete fields.until;
    reader.spellings.set(pathKey([...place.path, 'sleep', 'until']), [...place.source, 'until']);
  }
  return fields as unknown as StepDefinition;
}

// A case without steps replaces a case that can't be read.
function readNamed(written: unknown, checked: unknown, place: Place, reader: PartReader): Fields {
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

/** Adds every name in a part that could not be read, at any depth. */
export function addNames(part: unknown, names: Set<string>): void {
  // The author of `- fetch` meant an agent of that name.
  if (typeof part === 'string') names.add(part);
  if (typeof part !== 'object' || part === null) return;
  addOwnNames(part, names);
  for (const value of Object.values(part)) if (typeof value === 'object') addNames(value, names);
}

// Adds the names of the step itself, and the names in its parts that were left out.
function addDroppedNames(part: object, source: Path, reader: PartReader): void {
  addOwnNames(part, reader.brokenNames);
  for (const [key, value] of Object.entries(part)) {
    if (reader.dropped.has([...source, key])) addNames(value, reader.brokenNames);
    else if (key === 'cases') addDroppedNames(value as object, [...source, key], reader);
  }
}

// Adds the values of keys that hold names, even when the key is misspelled.
function addOwnNames(part: object, names: Set<string>): void {
  for (const [key, value] of Object.entries(part)) {
    if (typeof value !== 'string') continue;
    if (NAME_KEYS.includes(key) || suggestName(key, NAME_KEYS) !== undefined) names.add(value);
  }
}

/** The number of steps in a list, at all levels together. */
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
