/** Compiles the steps of one level to lists that the interpreter walks, with the names and failures each one concerns. */

import type { AgentStep, IfStep, StepDefinition, SwitchStep } from '../model/ensemble.ts';
import { compileAgentStep } from './compile-agent.ts';
import { compileForeach, compileParallel, compileTry, compileWhile } from './compile-blocks.ts';
import { compileChild } from './compile-child.ts';
import { createFieldCompiler } from './compile-fields.ts';
import { compileRouter } from './compile-routes.ts';
import { compileSleep, compileWait } from './compile-waits.ts';
import type { CompiledIfStep, CompiledList, CompiledStep, CompiledSwitchStep } from './compiled-ensemble.ts';
import { declareNames, reachedWith } from './declare-names.ts';
import type { Level, ListPlace, StepPlace } from './flow-level.ts';
import { readsOfStep } from './guard-reads.ts';
import type { NameSlot, Names } from './names.ts';
import type { Path } from './problem.ts';
import { type FlowContext, resolveAgent } from './resolve-agent.ts';

/** Compiles the flow of an ensemble. @param names - the outermost level, empty */
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
    inside: compileLevel,
    as: (view) => viewOf(view, context),
  };
}

function compileList(steps: readonly StepDefinition[], place: ListPlace, level: Level): CompiledList {
  const compiled: CompiledStep[] = [];
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
    if (result) compiled.push(result);
  });
  let ahead = new Set<NameSlot>();
  for (let i = compiled.length - 1; i >= 0; i--) {
    guardedAfter[i] = ahead;
    const reads = readsOfStep(compiled[i] as CompiledStep);
    if (reads.length > 0) ahead = new Set([...ahead, ...reads]);
  }
  return list;
}

function compileStep(
  step: StepDefinition,
  place: StepPlace,
  parent: CompiledList['parent'],
  level: Level,
): CompiledStep | undefined {
  for (const name of reachedWith(step, place.path, level.context)) level.names.reach(name);
  if ('agent' in step) return compileAgent(step, place, level);
  if ('if' in step) return compileIf(step, place, parent, level);
  if ('switch' in step) return compileSwitch(step, place, parent, level);
  if ('foreach' in step) return compileForeach(step, place, parent, level);
  if ('while' in step) return compileWhile(step, place, parent, level);
  if ('parallel' in step) return compileParallel(step, place, parent, level);
  if ('try' in step) return compileTry(step, place, parent, level);
  if ('wait' in step) return compileWait(step, place, level);
  if ('ensemble' in step) return compileChild(step, place, level);
  return compileSleep(step, place, level);
}

function compileAgent(step: AgentStep, place: StepPlace, { names, context }: Level): CompiledStep | undefined {
  const nameAt = { path: [...place.path, 'agent'], report: context.report };
  const resolved = resolveAgent(step, place.path, nameAt, context);
  const at = { key: place.key, name: step.name ?? step.agent, last: place.last };
  if (resolved.behaviour.routes) return compileRouter(resolved, at, names, context);
  return compileAgentStep(resolved, at, names, context);
}

function compileIf(step: IfStep, place: StepPlace, parent: CompiledList['parent'], level: Level): CompiledIfStep {
  const branch = (steps: readonly StepDefinition[], key: string) =>
    compileList(steps, { path: [...place.path, key], key: `${place.key}.${key}`, parent, last: place.last }, level);
  return {
    kind: 'if',
    key: place.key,
    guard: level.fields.guard(step.if, [...place.path, 'if']),
    then: branch(step.then, 'then'),
    else: step.else && branch(step.else, 'else'),
  };
}

function compileSwitch(
  step: SwitchStep,
  place: StepPlace,
  parent: CompiledList['parent'],
  level: Level,
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
  return {
    kind: 'switch',
    key,
    value: level.fields.guard(step.switch, [...place.path, 'switch']),
    cases: new Map(cases.map(([name, steps]) => [name, branch(steps, ['cases', name])])),
    default: step.default && branch(step.default, ['default']),
  };
}

/** Checks an agent that no step names as if one did: its author will use it next. @param names - a level of its own */
export function checkUnusedAgent(agent: string, path: Path, names: Names, context: FlowContext): void {
  const resolved = resolveAgent({ agent }, path, { path, report: context.report }, context);
  const at = { key: '', name: agent, last: false };
  if (resolved.behaviour.routes) compileRouter(resolved, at, names, context);
  else compileAgentStep(resolved, at, names, context);
}
