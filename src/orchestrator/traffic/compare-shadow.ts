/** Where the dry run of another version differs from the execution after which it ran. Pure. */

import { isMap } from '../../engine/base/json/is-map.ts';
import { equalJson, formatPath, type Json } from '../../engine/base/json/json.ts';
import { jsonTextBytes } from '../../engine/base/json/measure-json.ts';

/** A step that ran: an agent, a `wait` or a child ensemble. */
export interface RanStep {
  readonly key: string;
  readonly name: string;
}

/** How an execution went. */
export interface Went {
  readonly status: string;
  readonly output?: Json | undefined;
  /** Undefined: too many to compare. */
  readonly steps: readonly RanStep[] | undefined;
}

/** One value in two versions. Absent where a version has none. */
export interface OutputDifference {
  /** Such as `output.lines[0].cents`. */
  readonly path: string;
  readonly was?: Json;
  readonly shadow?: Json;
}

export interface WentDifferently {
  readonly status?: { readonly was: string; readonly shadow: string };
  /** The names of the steps that ran, in the order of the flow: agents, signals and child ensembles. */
  readonly path?: { readonly was: readonly string[]; readonly shadow: readonly string[] };
  /** The first 10. */
  readonly output?: readonly OutputDifference[];
}

const MAX_NAMES = 50;
const MAX_VALUES = 10;
/** A larger value is shown as null. */
const MAX_VALUE_BYTES = 200;

/** @returns undefined if nothing differs */
export function differenceBetween(was: Went, shadow: Went): WentDifferently | undefined {
  const isOther = was.status !== shadow.status;
  const names = [was, shadow].map(({ steps }) => steps && inOrderOfFlow(steps));
  const [before, after] = names as [string[] | undefined, string[] | undefined];
  const isOtherPath = before && after && !equalJson(before, after);
  // What failed has no output.
  const isComplete = was.status === 'completed' && !isOther;
  const outputs = isComplete ? differingValues(was.output, shadow.output, ['output']).slice(0, MAX_VALUES) : [];
  if (!isOther && !isOtherPath && outputs.length === 0) return undefined;
  return {
    ...(isOther && { status: { was: was.status, shadow: shadow.status } }),
    ...(isOtherPath && { path: { was: before.slice(0, MAX_NAMES), shadow: after.slice(0, MAX_NAMES) } }),
    ...(outputs.length > 0 && { output: outputs }),
  };
}

/** By the position of each step, which says nothing about time: of branches that run at once, any may end first. */
function inOrderOfFlow(steps: readonly RanStep[]): string[] {
  const placed = steps.map(({ key, name }) => ({
    name,
    place: key.replace(/\d+/g, (digits) => digits.padStart(9, '0')),
  }));
  return placed.sort((a, b) => (a.place < b.place ? -1 : a.place > b.place ? 1 : 0)).map(({ name }) => name);
}

type Path = readonly (string | number)[];

function differingValues(was: Json | undefined, shadow: Json | undefined, path: Path): OutputDifference[] {
  if (was !== undefined && shadow !== undefined) {
    if (equalJson(was, shadow)) return [];
    if (isMap(was) && isMap(shadow)) {
      const keys = [...new Set([...Object.keys(was), ...Object.keys(shadow)])];
      return keys.flatMap((key) => differingValues(own(was, key), own(shadow, key), [...path, key]));
    }
    if (Array.isArray(was) && Array.isArray(shadow)) {
      const length = Math.max(was.length, shadow.length);
      return Array.from({ length }, (_, i) => i).flatMap((i) => differingValues(was[i], shadow[i], [...path, i]));
    }
  }
  if (was === undefined && shadow === undefined) return [];
  return [
    {
      path: formatPath(path as (string | number)[]),
      ...(was !== undefined && { was: short(was) }),
      ...(shadow !== undefined && { shadow: short(shadow) }),
    },
  ];
}

function own(value: Readonly<Record<string, Json>>, key: string): Json | undefined {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function short(value: Json): Json {
  return jsonTextBytes(value, MAX_VALUE_BYTES) > MAX_VALUE_BYTES ? null : value;
}
