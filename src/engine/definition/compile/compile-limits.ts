/** Compiles `concurrency` and `rate`: the limits that an execution runs under, computed from its input when it is accepted. */

import { hashText } from '../../base/bytes/hash.ts';
import { isOrchestratorError, OrchestratorError } from '../../base/errors.ts';
import { formatPath, type Json } from '../../base/json/json.ts';
import { suggestName } from '../../base/suggest-name.ts';
import { type Duration, toMs } from '../../base/time/duration.ts';
import { describeValue, quoted } from '../../base/wording.ts';
import type { Gather, LimitsOf } from '../../compiled/compiled-ensemble.ts';
import { ExpressionScope } from '../../compiled/expression-scope.ts';
import type { EnsembleDefinition } from '../../ensemble/ensemble.ts';
import type { AgentConcurrency, ConcurrencyRule, QueueRule, RateRule } from '../../ensemble/flow-control.ts';
import {
  AGENT,
  FAIR,
  type FlowLimit,
  MAX_HELD_AT_ONCE,
  MAX_PRIORITY,
  RATE,
  readKey,
  SHARED,
} from '../../execution/limits/flow-limit.ts';
import type { Evaluate } from '../../expression/evaluation.ts';
import type { Report } from '../forms/check-shape.ts';
import type { Path } from '../source/problem.ts';
import { createFieldCompiler, type FieldCompiler } from './config/compile-fields.ts';
import { createNames, type Names } from './names/names.ts';
import type { KnownNames } from './names/outermost-names.ts';
import type { FlowContext } from './resolve-agent.ts';

type Compute<T> = (input: Json, now: number) => T;

interface CompiledRule {
  readonly key: Compute<string>;
  readonly max: Compute<number>;
  /** What does not depend on the input. */
  readonly rest: Omit<FlowLimit, 'key' | 'max' | 'since'>;
}

const MAX_PERIOD_MS = 31 * 24 * 3_600_000;

/** @returns undefined for an ensemble without limits */
export function compileLimits(
  { name, concurrency = [], rate = [], fair }: EnsembleDefinition,
  known: KnownNames,
  context: FlowContext,
): LimitsOf | undefined {
  if (concurrency.length + rate.length === 0 && fair === undefined) return undefined;
  const compiler = compilerBefore(known, context);
  const nameOf = (i: number) => (i === 0 ? name : `${name}[${i}]`);
  const groups = fair === undefined ? [] : compileFair(fair, nameOf, compiler);
  const rules = [
    ...concurrency.map((rule, i) => compileConcurrency(rule, nameOf(i), ['concurrency', i], compiler)),
    ...rate.map((rule, i) => compileRate(rule, RATE + nameOf(i), ['rate', i], compiler)),
  ];
  let readAt: number | undefined;
  const sinceOf = (now: number) => {
    readAt ??= context.host.readAt?.() ?? now;
    return readAt;
  };
  const limitsOf = (input: Json, now: number) => {
    const since = sinceOf(now);
    return [...groups, ...rules].map(
      ({ key, max, rest }): FlowLimit => ({ ...rest, key: key(input, now), max: max(input, now), since }),
    );
  };
  const given = [...concurrency, ...rate];
  const constant = (now: number) =>
    rules.flatMap(({ max, rest }, i): FlowLimit[] =>
      typeof given[i]?.limit === 'string' ? [] : [{ ...rest, key: '', max: max(null, now), since: sinceOf(now) }],
    );
  return Object.assign(limitsOf, { constant });
}

/** The two levels of groups: they limit nothing, and come first. */
function compileFair(
  fair: string | readonly string[],
  nameOf: (i: number) => string,
  compiler: RuleCompiler,
): CompiledRule[] {
  const keys = [fair]
    .flat()
    .map((key, i) => compute(key, typeof fair === 'string' ? ['fair'] : ['fair', i], compiler, readKey));
  return [0, 1].map((i): CompiledRule => {
    const key = keys[i];
    return {
      // Without quotes, and short.
      key: key ? (input, now) => hashText(key(input, now)).slice(0, GROUP_KEY) : () => '',
      max: () => MAX_HELD_AT_ONCE,
      rest: { name: FAIR + nameOf(i) },
    };
  });
}
const GROUP_KEY = 16;

/** Before an execution begins, only its input is known. */
function namesBefore(known: KnownNames): Names {
  const names = createNames(known);
  return {
    ...names,
    resolve(name, path) {
      if (name === 'input' || name === 'env') return names.resolve(name, path);
      return {
        problem: `\`${name}\` can't be read here: before an execution begins, only \`input\` and \`env\` are known`,
      };
    },
  };
}

interface RuleCompiler {
  readonly fields: FieldCompiler;
  readonly context: FlowContext;
  readonly env: KnownNames['env'];
}

function compilerBefore(known: KnownNames, context: FlowContext): RuleCompiler {
  const fields = createFieldCompiler(namesBefore(known), context.host, context.report);
  return { fields, context, env: known.env };
}

function compileConcurrency(rule: ConcurrencyRule, own: string, at: Path, compiler: RuleCompiler): CompiledRule {
  const { limit, shared, key, hold } = rule;
  const name = shared === undefined ? own : SHARED + shared;
  return {
    key: keyOf(key, at, compiler),
    max:
      typeof limit === 'string' && shared === undefined
        ? compute(limit, [...at, 'limit'], compiler, readMax)
        : slotsOf(rule, at, compiler),
    rest: { name, ...(hold && { hold }), ...queueRuleOf(rule, at, compiler) },
  };
}

function compileRate(rule: RateRule, name: string, at: Path, compiler: RuleCompiler): CompiledRule {
  const { limit, key, burst, learn } = rule;
  const { report, dropped } = compiler.context;
  const period = periodOf(rule.period, [...at, 'period'], compiler.context);
  if (rule.over === 'cancel-running' && !dropped([...at, 'over']))
    report({
      path: [...at, 'over'],
      message:
        '`cancel-running` is a rule of `concurrency`: an execution that is cancelled gives nothing back to a rate',
    });
  return {
    key: keyOf(key, at, compiler),
    max: typeof limit === 'string' ? compute(limit, [...at, 'limit'], compiler, readMax) : () => limit,
    rest: {
      name,
      period,
      ...(burst !== undefined && { burst }),
      ...(learn && { learn }),
      ...queueRuleOf(rule, at, compiler),
    },
  };
}

function keyOf(key: string | undefined, at: Path, compiler: RuleCompiler): Compute<string> {
  return key === undefined ? () => '' : compute(key, [...at, 'key'], compiler, readKey);
}

function queueRuleOf(
  { over = 'queue', queueLimit }: QueueRule,
  at: Path,
  { context }: RuleCompiler,
): Pick<FlowLimit, 'over' | 'queued'> {
  if (queueLimit !== undefined && (over === 'refuse' || over === 'cancel-running'))
    context.report({
      path: [...at, 'queueLimit'],
      message: `has no effect with \`over: ${over}\`: remove one of them`,
    });
  if (queueLimit === 0 && over.startsWith('keep'))
    context.report({ path: [...at, 'queueLimit'], message: `must be 1 or more with \`over: ${over}\`` });
  if (over === 'queue') return queueLimit === undefined ? {} : { queued: queueLimit };
  if (over === 'refuse') return { over, queued: 0 };
  return over === 'cancel-running' ? { over } : { over, queued: queueLimit ?? 1 };
}

/** @returns undefined for an ensemble each of whose starts makes an execution */
export function compileGather(
  definition: EnsembleDefinition,
  known: KnownNames,
  context: FlowContext,
): Gather | undefined {
  const { debounce, batch, priority } = definition;
  const rule = debounce ?? batch;
  if (!rule) return undefined;
  const { report, dropped } = context;
  const kind = debounce ? 'debounce' : 'batch';
  const compiler = compilerBefore(known, context);
  if (debounce && batch)
    report({ path: ['batch'], message: '`debounce` and `batch` are both given; keep one of them' });
  const refuse = (path: Path, what: string, why: string) =>
    report({ path, message: `${what} can't be used with \`${kind}\`, ${why}` });
  if (priority !== undefined) refuse(['priority'], '`priority`', 'which says when the execution begins');
  if (startWithinOf(definition) !== undefined) {
    const path = definition.startWithin === undefined ? kind : 'startWithin';
    refuse([path], '`startWithin` or `queueTtl`', 'which waits for more starts');
  }
  const starting = (definition.trigger ?? []).findIndex((one) => one.type === 'webhook' && one.orStart === true);
  if (starting >= 0) refuse(['trigger', starting, 'orStart'], '`orStart`', 'whose execution begins later');
  const wait = periodOf(rule.wait, [kind, 'wait'], context);
  const longest = Math.min(wait * DEFAULT_WAITS, MAX_PERIOD_MS);
  const max = debounce?.max === undefined ? longest : periodOf(debounce.max, ['debounce', 'max'], context);
  if (max < wait && !dropped(['debounce', 'max']))
    report({ path: ['debounce', 'max'], message: 'must be at least `wait`: no execution begins before that' });
  return {
    kind,
    waitMs: wait,
    maxMs: debounce ? max : wait,
    keep: batch ? 'all' : (debounce?.use ?? 'last'),
    size: batch?.size ?? Number.POSITIVE_INFINITY,
    key: keyOf(rule.key, [kind], compiler),
  };
}

/** How many times `wait` a debounced start waits at most, without `max`. */
const DEFAULT_WAITS = 100;

function periodOf(duration: Duration, path: Path, { report, dropped }: FlowContext): number {
  const ms = dropped(path) ? 1 : toMs(duration);
  if (ms >= 1 && ms <= MAX_PERIOD_MS) return ms;
  report({ path, message: 'must be from 1 ms to 31 days, such as `1m`' });
  return 1;
}

/** @returns undefined for an ensemble whose executions all have the priority 0 */
export function compilePriority(
  { priority }: EnsembleDefinition,
  known: KnownNames,
  context: FlowContext,
): Compute<number> | undefined {
  if (priority === undefined || priority === 0) return undefined;
  if (typeof priority === 'number') return () => priority;
  return compute(priority, ['priority'], compilerBefore(known, context), readPriority);
}

/** ms in which an execution must begin. Undefined: any time. */
export function startWithinOf({ startWithin, concurrency = [], rate = [] }: EnsembleDefinition): number | undefined {
  const all = [startWithin, ...[...concurrency, ...rate].map(({ queueTtl }) => queueTtl)];
  const given = all.flatMap((one) => (one === undefined ? [] : [toMs(one)]));
  return given.length === 0 ? undefined : Math.min(...given);
}

/** The limit of an agent. @param own - its name, if it has slots of its own */
export function compileAgentLimit(
  rule: AgentConcurrency,
  own: string,
  { path, report }: { readonly path: Path; readonly report: Report },
  context: FlowContext,
): Omit<FlowLimit, 'key'> {
  const max = slotsOf(rule, path, { context: { ...context, report } })(null, 0);
  return {
    name: rule.shared === undefined ? AGENT + own : SHARED + rule.shared,
    max,
    since: context.host.readAt?.() ?? 0,
  };
}

function slotsOf(
  { limit, shared }: Pick<ConcurrencyRule, 'limit' | 'shared'>,
  path: Path,
  { context }: { readonly context: Pick<FlowContext, 'report' | 'dropped' | 'host'> },
): Compute<number> {
  const { report, dropped, host } = context;
  if (dropped(path)) return () => 1;
  if ((limit === undefined) === (shared === undefined)) {
    const message =
      limit === undefined
        ? 'needs `limit`, or `shared` with the name of a shared limit'
        : '`limit` and `shared` are both given; keep one of them';
    report({ path, message });
  }
  if (shared === undefined) return () => limit as number;
  const { sharedLimits = new Map<string, number>(), lenient } = host;
  const slots = sharedLimits.get(shared);
  if (slots === undefined && !lenient) {
    const message = `there is no shared limit ${quoted(shared)}; define it with the option \`sharedLimits: { ${shared}: { concurrency: 4 } }\``;
    const suggestion = suggestName(shared, [...sharedLimits.keys()]);
    report({ path: [...path, 'shared'], message, suggestion, notConfigured: true });
  }
  return () => slots ?? 1;
}

/** @param read - throws what is wrong with the value, as text */
function compute<T>(
  text: string,
  path: Path,
  { fields, context, env }: RuleCompiler,
  read: (value: Json) => T,
): Compute<T> {
  const { evaluate } = fields.value(text, path);
  if (!text.includes('${')) {
    const example =
      path.at(-1) === 'key' || path[0] === 'fair' ? '`${input.customer}`' : "`${input.tier == 'premium' ? 10 : 1}`";
    context.report({ path, message: `must read the input, such as ${example}` });
  }
  const field = formatPath(path);
  return (input, now) => {
    try {
      return read(evaluated(evaluate, input, now, env));
    } catch (thrown) {
      const reason = isOrchestratorError(thrown) ? thrown.message : String(thrown);
      const issues = [{ path: '', message: `${field} ${reason}` }];
      throw new OrchestratorError('INVALID_INPUT', `\`${field}\` (${text}) ${reason}`, { details: { issues } });
    }
  };
}

function evaluated(evaluate: Evaluate<ExpressionScope>, input: Json, createdAt: number, env: KnownNames['env']): Json {
  const run = { seed: '', input, env, headers: {}, trigger: {}, execution: {}, createdAt };
  return evaluate(new ExpressionScope(run, undefined, 0));
}

function readPriority(value: Json): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_PRIORITY) return value as number;
  throw `must be a whole number from 0 to ${MAX_PRIORITY}, not ${describeValue(value)}`;
}

function readMax(value: Json): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_HELD_AT_ONCE)
    return value as number;
  throw `must be a whole number from 1 to ${MAX_HELD_AT_ONCE}, not ${describeValue(value)}`;
}
