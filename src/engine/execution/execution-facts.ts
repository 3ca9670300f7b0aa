/** What people are shown of an execution, in this order: on the command line and in the dashboard. */

import type { Execution, ExecutionCompletion, ExecutionMove, ExecutionRetry } from './execution.ts';

/** A name in lower case, and a value that each place shows in its own way. */
export type ExecutionFact = { readonly name: string } & (
  | { readonly kind: 'text'; readonly value: string }
  /** Unix ms. */
  | { readonly kind: 'instant'; readonly value: number }
  /** ms. */
  | { readonly kind: 'duration'; readonly value: number }
  /** How often something happened. */
  | { readonly kind: 'times'; readonly value: number }
  /** The id of another execution. */
  | { readonly kind: 'execution'; readonly value: string }
);

type Kind = ExecutionFact['kind'];

/** The facts that an execution has, besides its id, ensemble, status, error, input and output. A server of an earlier version may leave some out. */
export function executionFacts(execution: Execution<unknown>): readonly ExecutionFact[] {
  const { trigger, createdAt, startedAt, finishedAt, deadlineAt, components = [] } = execution;
  const { metrics, tags = [], moves = [], completions = [] }: Partial<Execution<unknown>> = execution;
  const { queued, waited, usage } = metrics ?? {};
  const facts: readonly (readonly [name: string, kind: Kind, value: string | number | undefined])[] = [
    ['created', 'instant', startedAt === createdAt ? undefined : createdAt],
    ['started', 'instant', startedAt],
    ['finished', 'instant', finishedAt],
    ['duration', 'duration', execution.duration],
    ['queued', 'duration', queued || undefined],
    ['waited', 'duration', waited || undefined],
    ['recovered', 'times', execution.recoveries || undefined],
    ['deadline', 'instant', finishedAt === undefined ? deadlineAt : undefined],
    ['trigger', 'text', triggerOf(trigger)],
    ['due', 'instant', trigger.scheduledAt],
    ['tokens', 'text', usage && tokensOf(usage)],
    ['tags', 'text', tags.length === 0 ? undefined : tags.join(', ')],
    ['parent', 'execution', execution.parentId],
    ['retry of', 'execution', execution.retryOf],
    ['retried by', 'execution', execution.retriedBy],
    ['retry', 'text', trigger.retry && retryOf(trigger.retry)],
    ['version', 'text', execution.version],
    ['traffic', 'text', trigger.traffic?.split && sharesOf(trigger.traffic.split)],
    ...moves.map((move) => ['moved', 'text', moveOf(move)] as const),
    ...completions.map((one) => ['completed', 'text', completionOf(one)] as const),
    ...components.map(({ kind, name, version, ref }) => [kind, 'text', `${name} ${version} (${ref})`] as const),
  ];
  return facts.flatMap(([name, kind, value]) => (value === undefined ? [] : [{ name, kind, value } as ExecutionFact]));
}

function triggerOf({ type, cron, timezone, dryRun }: Execution['trigger']): string {
  const started = cron === undefined ? type : `${type}, ${cron} ${timezone}`;
  return dryRun ? `${started}, dry run: nothing was done` : started;
}

/** Such as `v2 10 %, v1 90 %`. */
export function sharesOf(split: Readonly<Record<string, number>>): string {
  return Object.entries(split)
    .map(([version, share]) => `${version} ${share} %`)
    .join(', ');
}

function moveOf({ from, to, by, map = {} }: ExecutionMove): string {
  const names = Object.entries(map).map(([old, name]) => `${old} is ${name}`);
  return [`${from} to ${to}`, ...names, ...(by === undefined ? [] : [`by ${by}`])].join(', ');
}

function retryOf({ from, definition, input, completed, by, reason }: ExecutionRetry): string {
  const said = [
    ...(from === undefined ? [] : [`from ${from}`]),
    ...(definition === undefined ? [] : [`in place of version ${definition}`]),
    ...(input ? ['with another input'] : []),
    ...(completed === undefined ? [] : [`${completed} completed by hand`]),
    ...(by === undefined ? [] : [`by ${by}`]),
    ...(reason === undefined ? [] : [reason]),
  ];
  return said.join(', ');
}

function completionOf({ key, by, reason }: ExecutionCompletion): string {
  return [`${key} by hand`, ...(by === undefined ? [] : [`by ${by}`]), ...(reason === undefined ? [] : [reason])].join(
    ', ',
  );
}

function tokensOf({ inputTokens, outputTokens, cost }: NonNullable<Execution['metrics']['usage']>): string {
  return `${inputTokens} + ${outputTokens}${cost === undefined ? '' : `, cost ${cost}`}`;
}
