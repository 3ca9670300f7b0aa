/** Reads the steps of a flow, each by the form of its verb, at every level. */

import type { StepDefinition } from '../model/ensemble.ts';
import { suggestName } from '../suggest-name.ts';
import { checkShape, type Report, type StandIns } from './check-shape.ts';
import type { DroppedParts } from './dropped-parts.ts';
import { LATER_VERBS, STEP_FORMS } from './forms.ts';
import type { Path } from './problem.ts';
import { type Fields, type Place, type Reader, readBehaviour, readSpelling } from './read-older-form.ts';
import { oneOf, quoted } from './wording.ts';

/** What reading the parts of a definition collects beside problems. */
export interface PartReader extends Reader {
  readonly dropped: DroppedParts;
  /** Names that stand in parts which were wrong: what reads them is not at fault. */
  readonly brokenNames: Set<string>;
}

type Verb = keyof typeof STEP_FORMS;
const VERBS = Object.keys(STEP_FORMS) as Verb[];

// With these a step whose own part is wrong still has its inner steps checked.
const STAND_INS: Partial<Record<Verb, StandIns>> = {
  if: { if: false, then: [] },
  foreach: { foreach: [], steps: [] },
};

/** Reads a list of steps; what is no list (and reported) has none. */
export function readSteps(entries: unknown, place: Place, reader: PartReader): StepDefinition[] {
  if (!Array.isArray(entries)) return [];
  return entries.map((entry, i) => {
    const at = { path: [...place.path, i], source: [...place.source, i] };
    const before = reader.dropped.size;
    const step = readStep(entry, at, reader);
    if (!step) noteNames(entry, reader.brokenNames);
    else if (reader.dropped.size > before) noteOwnNames(entry as object, reader.brokenNames);
    // A step that can't be read keeps its place, as one that does nothing, so that the paths of the others hold.
    return step ?? { if: false, then: [] };
  });
}

function readStep(entry: unknown, place: Place, reader: PartReader): StepDefinition | undefined {
  const verb = verbOf(entry, place.source, reader.report);
  if (!verb) return undefined;
  const checked = checkShape(STEP_FORMS[verb], entry, place.source, reader, STAND_INS[verb]);
  if (!checked) return undefined;
  const fields: Fields = { ...checked };
  const under = (key: string): Place => ({ path: [...place.path, key], source: [...place.source, key] });
  switch (verb) {
    case 'if':
      fields.then = readSteps(fields.then, under('then'), reader);
      if (fields.else) fields.else = readSteps(fields.else, under('else'), reader);
      break;
    case 'foreach':
      readSpelling(fields, 'condition', ['when'], place, reader);
      fields.steps = readSteps(fields.steps, under('steps'), reader);
      break;
    default:
      readSpelling(fields, 'agent', ['member'], place, reader);
      readBehaviour(fields, place, reader);
      if (fields.agent === undefined) return undefined;
  }
  return fields as unknown as StepDefinition;
}

function verbOf(entry: unknown, path: Path, report: Report): Verb | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    const suggestion = typeof entry === 'string' ? `agent: ${entry}` : undefined;
    report({ path, message: 'a step must be a map such as `agent: name`', suggestion });
    return undefined;
  }
  const verbs = VERBS.filter((verb) => Object.hasOwn(entry, verb));
  const later = LATER_VERBS.filter((verb) => Object.hasOwn(entry, verb));
  if (verbs.length + later.length === 1 || (verbs.length === 2 && verbs[0] === 'agent' && verbs[1] === 'member')) {
    if (verbs[0]) return verbs[0];
    report({ path: [...path, later[0] as string], key: true, message: laterMessage(later[0] as string) });
    return undefined;
  }
  if (verbs.length + later.length > 1) {
    const given = oneOf([...verbs, ...later], 'and');
    report({ path, message: `a step does one thing, and this one has ${given}; make a step of each` });
    return undefined;
  }
  reportNoVerb(Object.keys(entry), path, report);
  return undefined;
}

function laterMessage(verb: string): string {
  return `${quoted(verb)} steps are not part of this version; it has ${oneOf(['agent', 'if', 'foreach'], 'and')}`;
}

function reportNoVerb(keys: readonly string[], path: Path, report: Report): void {
  for (const key of keys) {
    const verb = suggestName(key, [...VERBS, ...LATER_VERBS]);
    if (verb === undefined) continue;
    report({ path: [...path, key], key: true, message: `${quoted(key)} is not a key of a step`, suggestion: verb });
    return;
  }
  report({ path, message: `a step needs one of ${oneOf(['agent', 'if', 'foreach'])} to say what it does` });
}

const NAME_KEYS = ['agent', 'member', 'name', 'as'];

/** Notes every name that a part which could not be read mentions, at any depth. */
export function noteNames(part: unknown, names: Set<string>): void {
  // `- fetch` stands for the agent that was meant.
  if (typeof part === 'string') names.add(part);
  if (typeof part !== 'object' || part === null) return;
  noteOwnNames(part, names);
  for (const value of Object.values(part)) if (typeof value === 'object') noteNames(value, names);
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
      for (const key of ['then', 'else', 'steps']) if (Object.hasOwn(step, key)) waiting.push((step as Fields)[key]);
    }
  }
  return count;
}
