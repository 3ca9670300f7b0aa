/** Resolves names that belong to no level of the flow: the input, variables, headers, the state, and agents that never run. */

import type { Json, JsonObject } from '../../../base/json/json.ts';
import { suggestName } from '../../../base/suggest-name.ts';
import { oneOf, quoted } from '../../../base/wording.ts';
import type { ExpressionScope } from '../../../compiled/expression-scope.ts';
import type { NameResolution, PathSegment } from '../../../expression/compile/compiled-expression.ts';
import type { Evaluate } from '../../../expression/evaluation.ts';
import type { ParsedExpressions } from '../../../expression/syntax/parsed-expressions.ts';
import { REQUEST_PARTS, type RequestPart } from '../../../webhook/kept-request.ts';
import { RESULT_MEMBERS } from '../../types/infer/step-result.ts';
import type { CompileHost } from '../triggers/compile-host.ts';
import { readError, readResult } from './result-reads.ts';

/** What is known about a definition before its flow is compiled. It is the same for all levels. */
export interface KnownNames {
  /** The values of `${env.X}`. */
  readonly env: Readonly<Record<string, string>>;
  /** Whether the variables are not known, so that any variable is allowed. */
  readonly anyEnv?: boolean;
  readonly unknownVariable?: CompileHost['unknownVariable'];
  /** The declared input fields; undefined when any field may be read. */
  readonly inputs: ReadonlySet<string> | undefined;
  readonly hasState: boolean;
  /** The declared and shared agents. An agent that never runs reads as not executed. */
  readonly agents: ReadonlySet<string>;
  /** The names of steps and items that have a meaning only inside a `foreach`. */
  readonly insideForeach: ReadonlyMap<string, 'step' | 'item'>;
  /** The signals that the flow waits for; undefined when they are not known. */
  readonly signals: ReadonlySet<string> | undefined;
  /** The names of wrong parts. They read as null without a further problem. */
  readonly broken: ReadonlySet<string>;
  /** Whether a part of the definition could not be read, so that any name may be valid. */
  readonly anyName: boolean;
  /** Filled during the compilation: the parts of its request that the definition reads. */
  readonly requestReads: Set<RequestPart>;
  /** Filled during the compilation: the syntax trees of the expressions. */
  readonly parsed?: ParsedExpressions | undefined;
}

/** What the resolver needs to know about the level of an expression. */
export interface Surroundings {
  /** The name of the nearest item; undefined outside a `foreach`. */
  readonly item: string | undefined;
  /** Every name that can be read at the level. */
  visible(): readonly string[];
}

const EXECUTION_MEMBERS = ['id', 'ensemble', 'version', 'startedAt'];
const TRIGGER_MEMBERS = [
  ...['type', 'method', 'path', 'query', 'headers', 'body', 'rawBody'],
  ...['cron', 'timezone', 'scheduledAt'],
];

/** The names that every expression may read. */
export const OUTERMOST: readonly string[] = ['input', 'env', 'headers', 'trigger', 'state', 'execution'];

/** Resolves a name that no level of the flow declares. */
export function resolveOutermost(
  name: string,
  path: readonly PathSegment[],
  from: Surroundings,
  known: KnownNames,
): NameResolution<ExpressionScope> {
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
      known.requestReads.add('headers');
      return readHeader((scope) => scope.run.headers, first, 1);
    case 'trigger':
      for (const part of REQUEST_PARTS) if (typeof first !== 'string' || first === part) known.requestReads.add(part);
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

/** Reads the error that a `catch` caught, from the scope of the `catch` and every scope inside it. */
export function readCaught([first]: readonly PathSegment[]): NameResolution<ExpressionScope> {
  const problem = unknownMember('error', first, ['code', 'message', 'agent', 'details']);
  return problem ?? { read: (scope) => readError(scope.caught), consumed: 0 };
}

function resolveAgentName(
  name: string,
  path: readonly PathSegment[],
  from: Surroundings,
  known: KnownNames,
): NameResolution<ExpressionScope> {
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
  return { problem: `there is no agent or name ${quoted(name)}`, isUnknown: true, ...near(name, from.visible()) };
}

function undeclaredInput(name: string, declared: ReadonlySet<string>): { problem: string; suggestion?: string } {
  const problem = `input ${quoted(name)} is not declared in \`inputs\``;
  // `input.first-name` is a subtraction, so the part before the hyphen is reported as unknown.
  const hyphenated = [...declared].find((other) => other.startsWith(`${name}-`));
  if (hyphenated !== undefined) return { problem, suggestion: `input['${hyphenated}']` };
  return { problem, ...near(name, declared) };
}

function resolveEnv(first: PathSegment | undefined, known: KnownNames): NameResolution<ExpressionScope> {
  const { env, anyEnv } = known;
  if (typeof first !== 'string') return { problem: 'name the variable: `env.NAME`' };
  if (Object.hasOwn(env, first)) {
    const value = env[first] as string;
    return { read: () => value, consumed: 1 };
  }
  if (anyEnv) return { read: () => null, consumed: 1 };
  return unknownVariable(first, known);
}

/** The problem of an unknown variable. */
export function unknownVariable(
  name: string,
  { env, unknownVariable: describe = notInOptions }: Pick<KnownNames, 'env' | 'unknownVariable'>,
): { problem: string; suggestion?: string } {
  return { problem: describe(name), ...near(name, Object.keys(env)) };
}

function notInOptions(name: string): string {
  return `variable ${quoted(name)} is neither in \`env\` nor in \`secrets\` of createOrchestrator`;
}

// Header names are stored in lower case. A name in the definition is converted, so that it can be written in any case.
function readHeader(
  headers: Evaluate<ExpressionScope>,
  name: PathSegment | undefined,
  consumed: number,
): NameResolution<ExpressionScope> {
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

/** The problem of `${agent.x}` when `x` is not a member of a result. */
export function unknownResultMember(
  name: string,
  [first]: readonly PathSegment[],
): NameResolution<ExpressionScope> | undefined {
  const problem = unknownMember(name, first, RESULT_MEMBERS);
  if (!problem || problem.suggestion !== undefined) return problem;
  return { ...problem, suggestion: `${name}.output.${String(first)}` };
}

/** The problem of an unknown member of a name. */
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
