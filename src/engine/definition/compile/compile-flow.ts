/** Compiles lists of steps to the lists that the interpreter runs, with the names and the guards of each step. */

import { parseDuration } from '../../base/time/duration.ts';
import type {
  CompiledEnsembleStep,
  CompiledIfStep,
  CompiledList,
  CompiledStep,
  CompiledSwitchStep,
  StepEntry,
} from '../../compiled/compiled-ensemble.ts';
import type { NameSlot } from '../../compiled/name-slot.ts';
import type { AgentStep, EnsembleStep, IfStep, StepDefinition, SwitchStep } from '../../ensemble/ensemble.ts';
import { type StepOf, type StepVerb, verbOf } from '../../ensemble/step-verb.ts';
import { CHILD_TIMEOUT_RULE } from '../forms/flow-forms.ts';
import type { Path } from '../source/problem.ts';
import { compileAgentStep } from './compile-agent.ts';
import { compileForeach, compileParallel, compileTry, compileWhile } from './compile-blocks.ts';
import { compileRouter } from './compile-routes.ts';
import { compileSleep, compileTimeout, compileWait } from './compile-waits.ts';
import { createFieldCompiler } from './config/compile-fields.ts';
import { refuseSecrets } from './config/refuse-secrets.ts';
import { declareNames, reachedWith } from './names/declare-names.ts';
import type { Level, ListPlace, StepPlace } from './names/flow-level.ts';
import { readsOfStep } from './names/guard-reads.ts';
import type { Names } from './names/names.ts';
import { type WrittenStep, warnOfSteppedOver } from './names/warn-stepped-over.ts';
import { type FlowContext, resolveAgent } from './resolve-agent.ts';

/** Compiles the flow of an ensemble. @param names - the names of the outermost level, still empty */
export function compileFlow(flow: readonly StepDefinition[], names: Names, context: FlowContext): CompiledList {
  return compileLevel(flow, { path: ['flow'], key: 'flow', parent: undefined, last: true }, names, context);
}

function compileLevel(
  steps: readonly StepDefinition[],
  place: ListPlace,
  names: Names,
  context: FlowContext,
): CompiledList {
  declareNames(steps, place.path, new Map(), names, context);
  return compileList(steps, place, viewOf(names, context));
}

function viewOf(names: Names, context: FlowContext): Level {
  return {
    names,
    fields: createFieldCompiler(names, context.host, context.report),
    context,
    list: compileList,
    nested: compileLevel,
    withNames: (view) => viewOf(view, context),
  };
}

function compileList(steps: readonly StepDefinition[], place: ListPlace, level: Level): CompiledList {
  const compiled: CompiledStep[] = [];
  const written: WrittenStep[] = [];
  const guardedAfter: Set<NameSlot>[] = [];
  const list: CompiledList = { steps: compiled, parent: place.parent, guardedAfter };
  steps.forEach((step, i) => {
    const index = (place.first ?? 0) + i;
    const at = {
      path: [...place.path, index],
      key: `${place.key}[${index}]`,
      last: place.last && i === steps.length - 1,
    };
    const result = compileStep(step, at, { list, index: compiled.length }, level);
    if (!result) return;
    compiled.push(result);
    written.push({ step, compiled: result, path: at.path });
  });
  let readsAfter = new Set<NameSlot>();
  // The first step after the current one whose guards read a name.
  const readers = new Map<NameSlot, number>();
  for (let i = compiled.length - 1; i >= 0; i--) {
    guardedAfter[i] = readsAfter;
    const { slot }: StepEntry = compiled[i] as CompiledStep;
    const reader = slot && readers.get(slot);
    if (reader !== undefined) warnOfSteppedOver(written, i, reader, level.context.report);
    const reads = readsOfStep(compiled[i] as CompiledStep);
    for (const read of reads) readers.set(read, i);
    if (reads.length > 0) readsAfter = new Set([...readsAfter, ...reads]);
  }
  return list;
}

function compileStep(
  step: StepDefinition,
  place: StepPlace,
  parent: CompiledList['parent'],
  level: Level,
): CompiledStep | undefined {
  // The steps of a `while` read the results of the round before. Other steps can't read their own result before they have run.
  if ('while' in step) reach(step, place, level);
  const compile = COMPILERS[verbOf(step) as StepVerb] as Compile<StepDefinition>;
  const compiled = compile(step, place, level, parent);
  reach(step, place, level);
  return compiled;
}

function reach(step: StepDefinition, place: StepPlace, { names, context }: Level): void {
  for (const name of reachedWith(step, place.path, context)) names.reach(name);
}

type Compile<S> = (step: S, place: StepPlace, level: Level, parent: CompiledList['parent']) => CompiledStep | undefined;

/** How each form is compiled. */
const COMPILERS: { readonly [V in StepVerb]: Compile<StepOf<V>> } = {
  agent: compileAgent,
  if: compileIf,
  switch: compileSwitch,
  foreach: compileForeach,
  while: compileWhile,
  parallel: compileParallel,
  try: compileTry,
  sleep: compileSleep,
  wait: compileWait,
  ensemble: compileEnsembleStep,
};

function compileAgent(step: AgentStep, place: StepPlace, level: Level): CompiledStep | undefined {
  const { names, context } = level;
  const nameAt = { path: [...place.path, 'agent'], report: context.report };
  const resolved = resolveAgent(step, place.path, nameAt, context);
  const at = { key: place.key, name: step.name ?? step.agent, last: place.last };
  if (resolved.behaviour.routes) {
    reach(step, place, level);
    return compileRouter(resolved, at, names, context);
  }
  return compileAgentStep(resolved, at, names, context);
}

function compileIf(step: IfStep, place: StepPlace, level: Level, parent: CompiledList['parent']): CompiledIfStep {
  const branch = (steps: readonly StepDefinition[], key: string) =>
    compileList(steps, { path: [...place.path, key], key: `${place.key}.${key}`, parent, last: place.last }, level);
  const guard = level.fields.guard(step.if, [...place.path, 'if']);
  return {
    kind: 'if',
    key: place.key,
    guard,
    readsState: guard.readsState,
    then: branch(step.then, 'then'),
    else: step.else && branch(step.else, 'else'),
  };
}

function compileSwitch(
  step: SwitchStep,
  place: StepPlace,
  level: Level,
  parent: CompiledList['parent'],
): CompiledSwitchStep {
  const { key, last } = place;
  const branch = (steps: readonly StepDefinition[], path: readonly string[]) => {
    const at = { path: [...place.path, ...path], key: [key, ...path].join('.'), parent, last };
    return compileList(steps, at, level);
  };
  const cases = Object.entries(step.cases);
  if (cases.length === 0) {
    level.context.report({ path: [...place.path, 'cases'], message: 'must have at least one case' });
  }
  for (const [name] of cases) {
    if (!name.includes('${')) continue;
    const message = 'a case is not evaluated, so `${...}` in it would stay text: use `if` with a comparison';
    level.context.report({ path: [...place.path, 'cases', name], key: true, message });
  }
  const value = level.fields.guard(step.switch, [...place.path, 'switch']);
  return {
    kind: 'switch',
    key,
    value,
    readsState: value.readsState,
    cases: new Map(cases.map(([name, steps]) => [name, branch(steps, ['cases', name])])),
    default: step.default && branch(step.default, ['default']),
  };
}

/** Checks an agent that no step uses, as if a step used it. @param names - the names of a separate level */
export function checkUnusedAgent(agent: string, path: Path, names: Names, context: FlowContext): void {
  const resolved = resolveAgent({ agent }, path, { path, report: context.report }, context);
  const at = { key: '', name: agent, last: false };
  if (resolved.behaviour.routes) compileRouter(resolved, at, names, context);
  else compileAgentStep(resolved, at, names, context);
}

function compileEnsembleStep(step: EnsembleStep, place: StepPlace, level: Level): CompiledEnsembleStep {
  const { ensemble, name = ensemble, condition, timeout } = step;
  const { context, fields, names } = level;
  const at = (key: string) => [...place.path, key];
  context.calls.push({ ensemble, path: at('ensemble') });
  const input = fields.value(step.input ?? {}, at('input'));
  // The input is stored and shown.
  refuseSecrets(input, at('input'), 'the input of another ensemble', context.host.secretNames, context.report);
  if ((typeof timeout === 'string' ? parseDuration(timeout) : timeout) === 0)
    context.report({ path: at('timeout'), message: 'must be above 0: no execution can end in 0 ms' });
  const timeoutField =
    timeout === undefined ? undefined : compileTimeout(timeout, at('timeout'), level, CHILD_TIMEOUT_RULE);
  const slot = names.declare(name);
  const guard = condition === undefined ? undefined : fields.guard(condition, at('condition'));
  return {
    kind: 'ensemble',
    key: place.key,
    ensemble,
    slot,
    condition: guard,
    readsState: [input, timeoutField, guard].some((field) => field?.readsState),
    input: input.evaluate,
    timeout: timeoutField?.evaluate,
    detached: step.detached ?? false,
    continueOnError: step.continueOnError ?? false,
  };
}
