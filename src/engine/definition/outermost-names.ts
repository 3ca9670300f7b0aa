/** What names mean that belong to no level of the flow: the input, variables, headers, state, agents that never ran. */

import type { NameResolution, PathSegment } from '../expression/compiled-expression.ts';
import type { Evaluate } from '../expression/evaluation.ts';
import type { Json, JsonObject } from '../json.ts';
import { suggestName } from '../suggest-name.ts';
import { RESULT_MEMBERS, readResult } from './result-reads.ts';
import type { Scope } from './scope.ts';
import { oneOf, quoted } from './wording.ts';

/** What is known of a definition before its flow is compiled; the same for all levels. */
export interface KnownNames {
  /** Values of `${env.X}`. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables are not known here: any may be named. */
  readonly anyEnv?: boolean;
  /** Declared input fields; undefined when none are declared, and any may be read. */
  readonly inputs: ReadonlySet<string> | undefined;
  readonly hasState: boolean;
  /** Agents that are declared or shared; one that never runs reads as not executed. */
  readonly agents: ReadonlySet<string>;
  /** Names of steps and items inside a `foreach` that mean nothing outside of one. */
  readonly insideForeach: ReadonlyMap<string, 'step' | 'item'>;
  /** The signals that the flow waits for; undefined where that is not known. */
  readonly signals: ReadonlySet<string> | undefined;
  /** Names of parts that are wrong: they read as null, and nobody complains. */
  readonly broken: ReadonlySet<string>;
  /** Part of the definition could not be read, so that any name may be right. */
  readonly anyName: boolean;
}

/** The level that asks. */
export interface Surroundings {
  /** What the nearest item is called; undefined outside a `foreach`. */
  readonly item: string | undefined;
  /** Every name that may be read there. */
  visible(): readonly string[];
}

const EXECUTION_MEMBERS = ['id', 'ensemble', 'version', 'startedAt'];
const TRIGGER_MEMBERS = [
  ...['type', 'method', 'path', 'query', 'headers', 'body', 'rawBody'],
  ...['cron', 'timezone', 'scheduledAt'],
];

/** The names that every expression may read. */
export const OUTERMOST: readonly string[] = ['input', 'env', 'headers', 'trigger', 'state', 'execution'];

/** What a name means that no level of the flow has, or why it means nothing. */
export function resolveOutermost(
  name: string,
  path: readonly PathSegment[],
  from: Surroundings,
  known: KnownNames,
): NameResolution<Scope> {
  const [first] = path;
  switch (name) {
    case 'input':
      if (typeof first === 'string' && known.inputs && !known.inputs.has(first)) {
        return undeclaredInput(first, known.inputs);
      }
      return { read: (scope) => scope.run.input, consumed: 0 };
    case 'env':
      return resolveEnv(first, known);
    case 'headers':
      return readHeader((scope) => scope.run.headers, first, 1);
    case 'trigger':
      if (first === 'headers') return readHeader((scope) => (scope.run.trigger.headers ?? null) as Json, path[1], 2);
      return unknownMember('trigger', first, TRIGGER_MEMBERS) ?? { read: (scope) => scope.run.trigger, consumed: 0 };
    case 'state':
      if (!known.hasState) return { problem: 'the ensemble has no `state`; declare `state: { initial: { ... } }`' };
      return { read: (scope) => scope.state, consumed: 0 };
    case 'execution':
      return (
        unknownMember('execution', first, EXECUTION_MEMBERS) ?? { read: (scope) => scope.run.execution, consumed: 0 }
      );
    case 'item':
    case 'index': {
      const { item } = from;
      if (item === undefined && known.anyName) return { read: () => null, consumed: path.length };
      if (item === undefined) return { problem: `\`${name}\` can be read only inside a \`foreach\`` };
      return { problem: `the item of this \`foreach\` is called \`${item}\``, suggestion: item };
    }
    case 'error':
      if (known.anyName) return readCaught(path);
      return { problem: "`error` can be read only inside a `catch`; an agent's error is `${agent.error.message}`" };
  }
  return resolveAgentName(name, path, from, known);
}

/** What a `catch` caught: its scope, and every one inside it, knows. */
export function readCaught([first]: readonly PathSegment[]): NameResolution<Scope> {
  const problem = unknownMember('error', first, ['code', 'message', 'agent']);
  return problem ?? { read: (scope) => (scope.caught ? { ...scope.caught } : null), consumed: 0 };
}

function resolveAgentName(
  name: string,
  path: readonly PathSegment[],
  from: Surroundings,
  known: KnownNames,
): NameResolution<Scope> {
  const inner = known.insideForeach.get(name);
  if (inner === 'item')
    return { problem: `${quoted(name)} is the item of a \`foreach\` and can be read only inside it` };
  if (inner === 'step') {
    const advice = 'give the `foreach` a `name` and read its output';
    return { problem: `${quoted(name)} runs inside a \`foreach\` and can be read only there; ${advice}` };
  }
  if (known.broken.has(name)) return { read: () => null, consumed: path.length };
  if (known.agents.has(name)) return unknownResultMember(name, path) ?? readResult(() => undefined, path);
  if (known.anyName) return { read: () => null, consumed: path.length };
  return { problem: `there is no agent or name ${quoted(name)}`, ...near(name, from.visible()) };
}

function undeclaredInput(name: string, declared: ReadonlySet<string>): { problem: string; suggestion?: string } {
  const problem = `input ${quoted(name)} is not declared in \`inputs\``;
  // `input.first-name` is a subtraction.
  const hyphenated = [...declared].find((other) => other.startsWith(`${name}-`));
  if (hyphenated !== undefined) return { problem, suggestion: `input['${hyphenated}']` };
  return { problem, ...near(name, declared) };
}

function resolveEnv(first: PathSegment | undefined, { env, anyEnv }: KnownNames): NameResolution<Scope> {
  if (typeof first !== 'string') return { problem: 'name the variable: `env.NAME`' };
  if (Object.hasOwn(env, first)) {
    const value = env[first] as string;
    return { read: () => value, consumed: 1 };
  }
  if (anyEnv) return { read: () => null, consumed: 1 };
  return unknownVariable(first, env);
}

/** The problem of an `${env.X}` that nobody handed over. */
export function unknownVariable(name: string, env: KnownNames['env']): { problem: string; suggestion?: string } {
  const problem = `variable ${quoted(name)} is neither in \`env\` nor in \`secrets\` of createOrchestrator`;
  return { problem, ...near(name, Object.keys(env)) };
}

// Header names are stored in lower case; a name that is known at load is looked up in any case.
function readHeader(headers: Evaluate<Scope>, name: PathSegment | undefined, consumed: number): NameResolution<Scope> {
  if (typeof name !== 'string') return { read: headers, consumed: consumed - 1 };
  const key = name.toLowerCase();
  return {
    read: (scope) => {
      const all = headers(scope) as JsonObject | null;
      return all && Object.hasOwn(all, key) ? (all[key] as Json) : null;
    },
    consumed,
  };
}

/** The problem of `${agent.x}` where `x` is nothing that agents have. */
export function unknownResultMember(name: string, [first]: readonly PathSegment[]): NameResolution<Scope> | undefined {
  const problem = unknownMember(name, first, RESULT_MEMBERS);
  if (!problem || problem.suggestion !== undefined) return problem;
  return { ...problem, suggestion: `${name}.output.${String(first)}` };
}

/** The problem of a member that a name has not. */
export function unknownMember(
  name: string,
  member: PathSegment | undefined,
  members: readonly string[],
): { problem: string; suggestion?: string } | undefined {
  if (typeof member !== 'string' || members.includes(member)) return undefined;
  return {
    problem: `${quoted(name)} has no ${quoted(member)}, only ${oneOf(members, 'and')}`,
    ...near(member, members),
  };
}

function near(name: string, known: Iterable<string>): { readonly suggestion?: string } {
  const suggestion = suggestName(name, known);
  return suggestion === undefined ? {} : { suggestion };
}
