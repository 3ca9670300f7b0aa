/** The steps of an execution as rows: each below the step that contains it, in the order in which they began. Pure. */

import type { ExecutionStep } from '../../engine/ensemble/execution-step.ts';

export interface StepRow {
  readonly step: ExecutionStep;
  /** 0 for a step of the flow itself. */
  readonly depth: number;
}

/** A key of a step inside another one: `...then[0]`, `...foreach[7].steps[0]`, `...model[1]`; the agent of a route has only a name. */
const INNER =
  /^(.*)\.(?:(?:foreach|while)\[\d+\]\.steps|then|else|default|parallel|try|catch|finally|model|tool|send|cases\..+)\[\d+\]$/s;
const ROUTED = /^(.*\])\.[^.[\]]+$/s;

/** Items that begin in the same millisecond are in the order of their numbers. */
const KEYS = new Intl.Collator('en', { numeric: true });

function byStart(a: ExecutionStep, b: ExecutionStep): number {
  return a.startedAt - b.startedAt || KEYS.compare(a.key, b.key);
}

/** The key of the step that directly contains a step. Undefined for a step of the flow itself. */
export function containerOf(key: string): string | undefined {
  return INNER.exec(key)?.[1] ?? ROUTED.exec(key)?.[1];
}

export function toRows(steps: readonly ExecutionStep[]): readonly StepRow[] {
  const known = new Set(steps.map(({ key }) => key));
  const inner = new Map<string | undefined, ExecutionStep[]>();
  for (const step of steps) {
    let container = containerOf(step.key);
    while (container !== undefined && !known.has(container)) container = containerOf(container);
    const list = inner.get(container);
    if (list) list.push(step);
    else inner.set(container, [step]);
  }
  const rows: StepRow[] = [];
  const add = (container: string | undefined, depth: number) => {
    const list = inner.get(container)?.sort(byStart) ?? [];
    for (const step of list) {
      rows.push({ step, depth });
      add(step.key, depth + 1);
    }
  };
  add(undefined, 0);
  return rows;
}
