/** Checks a value against a form of the language, reports its problems, and leaves out the wrong parts. */

import type * as z from 'zod/mini';
import { valueAt } from '../../base/json/value-at.ts';
import { RESERVED_NAMES } from '../../ensemble/name.ts';
import type { Path, Problem } from '../source/problem.ts';
import type { DroppedParts } from './dropped-parts.ts';
import { explainIssue, LANGUAGE, meantPaths } from './explain-issue.ts';

export type Report = (problem: Problem) => void;

/** Receives the problems, and the paths of the parts that are left out. */
export interface FormReader {
  readonly report: Report;
  readonly dropped?: DroppedParts;
}

/** Values that replace required keys that are missing or wrong, so that the rest of the form is checked too. */
export type StandIns = Readonly<Record<string, unknown>>;

const MAX_ROUNDS = 20;

/**
 * Checks `value`, reports every problem, and returns the value without its wrong parts, so that the rest of the definition is
 * checked too. It returns undefined when nothing usable is left.
 *
 * @param path - the path of the value in the source
 */
export function checkShape<S extends z.ZodMiniType>(
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

// Copies the value without the parts that the issues are about. @returns undefined when an issue is about the whole value
function dropWrongParts(
  value: unknown,
  issues: readonly z.core.$ZodIssue[],
  standIns: StandIns,
  onDrop: (path: Target) => void,
): unknown {
  const copy = structuredClone(value);
  for (const issue of issues) {
    for (const target of targetsOf(issue)) {
      onDrop(target);
      const removed = remove(copy, target, standIns);
      if (!removed) return undefined;
      onDrop(removed);
    }
    for (const path of meantPaths(issue, value)) onDrop(path);
  }
  return copy;
}

function targetsOf(issue: z.core.$ZodIssue): Target[] {
  const path = issue.path as Target;
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
}

// Removes the part at a path. A missing part or an entry of a list is removed with its parent. @returns the removed path
function remove(root: unknown, target: Target, standIns: StandIns): Target | undefined {
  for (let length = target.length; length > 0; length--) {
    const path = target.slice(0, length);
    const key = path[length - 1] as string | number;
    const parent = valueAt(root, path.slice(0, -1));
    // A part around it was removed before.
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

/** Reports a name that the language reserves. @returns whether the name is allowed */
export function checkNotReserved(name: string, path: Path, report: Report, advice = 'choose another'): boolean {
  if (!RESERVED_NAMES.has(name)) return true;
  report({
    path,
    message: `\`${name}\` is a reserved name: it means something else in every expression; ${advice}`,
  });
  return false;
}
