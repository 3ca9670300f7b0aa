/** Finds the verb of a step, or suggests one when the step has none. */

import { MAX_NAMED, suggestName } from '../../base/suggest-name.ts';
import { oneOf, quoted } from '../../base/wording.ts';
import type { Path } from '../source/problem.ts';
import type { Report } from './check-shape.ts';
import { STEP_FORMS } from './forms.ts';

export type Verb = keyof typeof STEP_FORMS;
const VERBS = Object.keys(STEP_FORMS) as Verb[];
/** The verbs without their other spellings. */
const NAMED_VERBS = VERBS.filter((verb) => verb !== 'member' && verb !== 'until');

/** Names of other languages for a verb. */
const FOREIGN_VERBS: Readonly<Record<string, Verb>> = {
  delay: 'sleep',
  pause: 'sleep',
  signal: 'wait',
  await: 'wait',
  workflow: 'ensemble',
  call: 'ensemble',
  child: 'ensemble',
  loop: 'while',
  repeat: 'while',
  for: 'foreach',
  each: 'foreach',
  match: 'switch',
  case: 'switch',
};

/** Parts that authors write as separate steps by mistake, and the verb of the step that they belong to. */
const PARTS: Readonly<Record<string, string>> = {
  then: '`if`',
  else: '`if`',
  steps: '`foreach` or `while`',
  cases: '`switch`',
  default: '`switch`',
  catch: '`try`',
  finally: '`try`',
};

/** The verb of a step. @returns undefined when it has no valid verb, which is reported */
export function verbOf(entry: unknown, path: Path, report: Report): Verb | undefined {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    // In other languages a branch is a list of steps.
    const sequence = Array.isArray(entry) && path.at(-2) === 'parallel' ? 'if: true, then: [...]' : undefined;
    const suggestion = typeof entry === 'string' ? `agent: ${entry}` : sequence;
    report({ path, message: 'a step must be a map such as `agent: name`', suggestion });
    return undefined;
  }
  const verbs = VERBS.filter((verb) => Object.hasOwn(entry, verb));
  if (verbs.length === 1 || (verbs.length === 2 && verbs[0] === 'agent' && verbs[1] === 'member')) return verbs[0];
  if (verbs.length > 1) {
    const given = oneOf(verbs, 'and');
    report({ path, message: `a step does one thing, but this step has ${given}; write one step for each` });
    return undefined;
  }
  reportNoVerb(Object.keys(entry), path, report);
  return undefined;
}

function reportNoVerb(all: readonly string[], path: Path, report: Report): void {
  const keys = all.slice(0, MAX_NAMED);
  for (const key of keys) {
    const verb = Object.hasOwn(FOREIGN_VERBS, key) ? FOREIGN_VERBS[key] : suggestName(key, VERBS);
    if (verb === undefined) continue;
    report({ path: [...path, key], key: true, message: `${quoted(key)} is not a key of a step`, suggestion: verb });
    return;
  }
  for (const key of keys) {
    if (!Object.hasOwn(PARTS, key)) continue;
    const message = `${quoted(key)} is not a step of its own: write it next to ${PARTS[key]}, in the same step`;
    report({ path: [...path, key], key: true, message });
    return;
  }
  report({ path, message: `a step needs one of ${oneOf(NAMED_VERBS)} to say what it does` });
}
