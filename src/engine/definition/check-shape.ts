/** Checks a value against one form of the language, reports what is wrong, and leaves the wrong parts out. */

import type * as z from 'zod';
import { RESERVED_NAMES } from '../model/name.ts';
import { valueAt } from '../value-at.ts';
import type { DroppedParts } from './dropped-parts.ts';
import { explainIssue, LANGUAGE, meantPaths } from './explain-issue.ts';
import type { Path, Problem } from './problem.ts';

export type Report = (problem: Problem) => void;

/** Where problems go, and where is noted what was left out. */
export interface FormReader {
  readonly report: Report;
  readonly dropped?: DroppedParts;
}

/** What takes the place of a required key that is missing or wrong, so that the rest of the form is checked too. */
export type StandIns = Readonly<Record<string, unknown>>;

const MAX_ROUNDS = 20;

/**
 * Checks `value`, reports every problem, and gives back what can still be worked with, so that the rest of the definition is
 * checked too: wrong parts are left out. Undefined when nothing of use is left.
 *
 * @param path - where the value stands in the source
 */
export function checkShape<S extends z.ZodType>(
  schema: S,
  value: unknown,
  path: Path,
  reader: FormReader,
  standIns: StandIns = {},
): z.output<S> | undefined {
  const first = schema.safeParse(value);
  if (first.success) return first.data;
  let { issues } = first.error;
  const meant = new Set(issues.flatMap((issue) => meantPaths(issue, value)).map((at) => JSON.stringify(at)));
  for (const issue of issues) {
    if (meant.has(JSON.stringify(issue.path))) continue;
    for (const problem of explainIssue(issue, value, path, LANGUAGE)) reader.report(problem);
  }
  let current = value;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const repaired = dropWrongParts(current, issues, standIns, (at) => reader.dropped?.add([...path, ...at]));
    if (repaired === undefined) return undefined;
    const next = schema.safeParse(repaired);
    if (next.success) return next.data;
    current = repaired;
    issues = next.error.issues;
  }
  return undefined;
}

type Target = readonly (string | number)[];

// Copies the value without the parts that the issues name; undefined when an issue names all of it.
function dropWrongParts(
  value: unknown,
  issues: readonly z.core.$ZodIssue[],
  standIns: StandIns,
  note: (path: Target) => void,
): unknown {
  const copy = structuredClone(value);
  for (const issue of issues) {
    for (const target of targetsOf(issue)) {
      note(target);
      const removed = remove(copy, target, standIns);
      if (!removed) return undefined;
      note(removed);
    }
    for (const path of meantPaths(issue, value)) note(path);
  }
  return copy;
}

function targetsOf(issue: z.core.$ZodIssue): Target[] {
  const path = issue.path as Target;
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
}

// Removes the part at a path; when it is missing or an entry of a list, what holds it. @returns what was removed
function remove(root: unknown, target: Target, standIns: StandIns): Target | undefined {
  for (let length = target.length; length > 0; length--) {
    const path = target.slice(0, length);
    const key = path[length - 1] as string | number;
    const parent = valueAt(root, path.slice(0, -1));
    // A part around it went before.
    if (parent === undefined) return path;
    if (Array.isArray(parent)) continue;
    const fields = parent as Record<string | number, unknown>;
    if (length === 1 && Object.hasOwn(standIns, key)) fields[key] = standIns[key];
    else if (!Object.hasOwn(fields, key)) continue;
    else delete fields[key];
    return path;
  }
  return undefined;
}

/** Says when a name is one that the language keeps for itself. */
export function checkNotReserved(name: string, path: Path, report: Report, advice = 'choose another'): boolean {
  if (!RESERVED_NAMES.has(name)) return true;
  report({
    path,
    message: `\`${name}\` is a reserved name: it means something else in every expression; ${advice}`,
  });
  return false;
}
