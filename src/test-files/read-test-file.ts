/** Reads a test file, and checks it against the ensembles that it tests. */

import type { EnsembleSource } from '../authoring/define.ts';
import type { DefinitionIssue } from '../engine/base/errors.ts';
import { isMap } from '../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../engine/base/json/json.ts';
import { suggestName } from '../engine/base/suggest-name.ts';
import { listOfNames, quoted } from '../engine/base/wording.ts';
import { compileEnsemble } from '../engine/definition/compile/compile-ensemble.ts';
import type { CompileHost } from '../engine/definition/compile/triggers/compile-host.ts';
import { checkShape } from '../engine/definition/forms/check-shape.ts';
import { type ParsedEnsemble, parseDefinition } from '../engine/definition/read/parse-ensemble.ts';
import { type Path, type Problem, toIssues } from '../engine/definition/source/problem.ts';
import { readSource } from '../engine/definition/source/read-source.ts';
import { schemaTypes } from '../engine/definition/types/from-json-schema.ts';
import { membersOf, nameOfType, type Type, union } from '../engine/definition/types/type.ts';
import type { EnsembleTypes } from '../engine/definition/types/walk/walker.ts';
import type { EnsembleDefinition, StepDefinition } from '../engine/ensemble/ensemble.ts';
import { innerLists, waitsIn } from '../engine/ensemble/inner-lists.ts';
import { EVENT_KINDS } from '../engine/events/event.ts';
import { compileText } from '../engine/expression/compile/compile-text.ts';
import { ExpressionSyntaxError } from '../engine/expression/syntax/expression-syntax-error.ts';
import { checkJsonSchema } from '../engine/json-schema/check-json-schema.ts';
import { expectOptions, isSchema } from './compare.ts';
import { type FlowTest, flowTestForm, testFileForm } from './test-form.ts';

/** A test file whose form is right. */
export interface TestFile {
  readonly ensemble: string;
  readonly tests: readonly FlowTest[];
  /** The ensemble, and those that it starts. */
  readonly sources: readonly EnsembleSource[];
}

/** The ensembles that test files can name. */
export interface TestedEnsembles {
  readonly host: CompileHost;
  readonly sources: ReadonlyMap<string, EnsembleSource>;
  readonly definitions: ReadonlyMap<string, ParsedEnsemble>;
}

export function testedEnsembles(sources: readonly EnsembleSource[], host: CompileHost): TestedEnsembles {
  const read = sources.map((source) => ({ source, parsed: parseDefinition(source as string | object) }));
  return {
    host,
    sources: new Map(
      read.map(({ source, parsed }) => [parsed.definition.name, withoutDoors(source, parsed.definition)]),
    ),
    definitions: new Map(read.map(({ parsed }) => [parsed.definition.name, parsed])),
  };
}

/** A test starts the ensemble itself, so triggers and notifications, and their variables, are not needed. */
function withoutDoors(source: EnsembleSource, definition: EnsembleDefinition): EnsembleSource {
  const {
    trigger: _trigger,
    notifications: _notifications,
    ...rest
  } = (typeof source === 'string' ? definition : source) as EnsembleDefinition;
  return rest as EnsembleSource;
}

/** @returns the tests, or every problem of the file */
export function readTestFile(
  text: string,
  file: string,
  tested: TestedEnsembles,
): { readonly file: TestFile } | { readonly issues: readonly DefinitionIssue[] } {
  const read = readSource(text);
  if (!read.ok) return { issues: read.issues.map((issue) => ({ ...issue, source: file })) };
  const problems: Problem[] = [];
  const report = (problem: Problem) => problems.push(problem);
  const head = checkShape(testFileForm(), read.value, [], { report });
  const tests = ((head?.tests ?? []) as readonly unknown[]).map(
    (test, i) => checkShape(flowTestForm(), test, ['tests', i], { report }) as FlowTest | undefined,
  );
  const ensemble = head?.ensemble ?? '';
  const parsed = tested.definitions.get(ensemble);
  const reached = parsed ? reachedFrom(ensemble, tested) : [];
  if (problems.length === 0 && !parsed)
    report({
      path: ['ensemble'],
      message: `there is no ensemble \`${ensemble}\``,
      suggestion: suggestName(ensemble, tested.definitions.keys()),
    });
  if (problems.length === 0 && parsed) {
    const names = namesIn(reached, tested);
    const types = compileEnsemble(parsed, tested.host).types?.(() => undefined, schemaTypes()).types;
    const seen = new Set<string>();
    for (const [i, test] of tests.entries()) {
      if (!test) continue;
      if (seen.has(test.name))
        report({ path: ['tests', i, 'name'], message: `another test is called \`${test.name}\`` });
      seen.add(test.name);
      checkTest(test, ['tests', i], { names, types, host: tested.host, report });
    }
  }
  if (problems.length > 0) {
    const located = { ...read.map, text: text.replace(/^\ufeff/, ''), value: read.value };
    return { issues: toIssues(problems, located, file) };
  }
  const sources = reached.map((name) => tested.sources.get(name) as EnsembleSource);
  return { file: { ensemble, tests: tests as readonly FlowTest[], sources } };
}

/** The ensemble, and those that its steps start, at any depth. */
function reachedFrom(ensemble: string, { definitions }: TestedEnsembles): readonly string[] {
  const reached = new Set([ensemble]);
  for (const name of reached) {
    const definition = definitions.get(name)?.definition;
    for (const step of definition ? stepsIn(definition.flow) : [])
      if ('ensemble' in step && definitions.has(step.ensemble)) reached.add(step.ensemble);
  }
  return [...reached];
}

function stepsIn(steps: readonly StepDefinition[]): StepDefinition[] {
  return steps.flatMap((step) => [step, ...innerLists(step).flatMap((inner) => stepsIn(inner.steps))]);
}

interface Names {
  readonly agents: ReadonlySet<string>;
  readonly signals: ReadonlySet<string>;
}

function namesIn(reached: readonly string[], { definitions, host }: TestedEnsembles): Names {
  const agents = new Set<string>();
  const signals = new Set<string>();
  for (const name of reached) {
    const { flow, agents: declared = [] } = (definitions.get(name) as ParsedEnsemble).definition;
    for (const step of stepsIn(flow)) if ('agent' in step) agents.add(step.name ?? step.agent);
    // The members of a router, and what a model calls, are agents too.
    for (const agent of [...declared, ...host.sharedAgents.values()]) agents.add(agent.name);
    for (const { wait } of waitsIn(flow)) signals.add(wait);
  }
  return { agents, signals };
}

interface Checking {
  readonly names: Names;
  readonly types: EnsembleTypes | undefined;
  readonly host: CompileHost;
  report(problem: Problem): void;
}

function checkTest(test: FlowTest, path: Path, checking: Checking): void {
  const { names, types, report } = checking;
  const { agents = {}, signals = [], expect = {}, http = [] } = test;
  const known = (name: string, at: Path, key = false) => {
    if (names.agents.has(name)) return;
    if (names.signals.has(name)) {
      report({ path: at, message: `\`${name}\` is a signal: here stand agents`, key });
      return;
    }
    report({ path: at, message: `there is no agent \`${name}\``, suggestion: suggestName(name, names.agents), key });
  };
  for (const [name, answers] of Object.entries(agents)) {
    known(name, [...path, 'agents', name], true);
    // Of several steps with one name, at most one runs.
    const outputs = (types?.answers ?? []).filter((one) => one.name === name).map(({ output }) => output);
    for (const [i, answer] of (Array.isArray(answers) ? answers : [answers]).entries()) {
      const at = [...path, 'agents', name, ...(Array.isArray(answers) ? [i] : [])];
      if ('output' in answer === 'error' in answer)
        report({ path: at, message: 'must have one of `output` and `error`' });
      if (answer.output !== undefined && outputs.length > 0)
        checkPossible(answer.output, union(outputs), [...at, 'output'], report);
    }
  }
  for (const [i, { name }] of signals.entries()) {
    if (names.signals.has(name)) continue;
    const message = `no step waits for the signal \`${name}\``;
    report({ path: [...path, 'signals', i, 'name'], message, suggestion: suggestName(name, names.signals) });
  }
  for (const [i, { request }] of http.entries())
    if (!/^(?:[A-Za-z]+\s+)?\S+$/.test(request))
      report({ path: [...path, 'http', i, 'request'], message: 'must be `METHOD url`, or a URL for every method' });
  const at = [...path, 'expect'];
  const { steps = {}, notRun = [], calls = {}, output, events = [] } = expect;
  for (const [i, event] of (events as readonly Json[]).entries()) {
    const [kind, place] = isMap(event) ? [event.event, ['event']] : [event, []];
    if (typeof kind === 'string' && !kind.includes('${') && !Object.hasOwn(EVENT_KINDS, kind))
      report({
        path: [...at, 'events', i, ...place],
        message: `there is no event \`${kind}\``,
        suggestion: suggestName(kind, Object.keys(EVENT_KINDS)),
      });
  }
  if (Array.isArray(steps)) for (const [i, name] of steps.entries()) known(name, [...at, 'steps', i]);
  else for (const name of Object.keys(steps)) known(name, [...at, 'steps', name], true);
  for (const [i, name] of notRun.entries()) known(name, [...at, 'notRun', i]);
  for (const name of Object.keys(calls)) if (!name.includes('://')) known(name, [...at, 'calls', name], true);
  checkExpected(expect as Json, at, checking);
  if (output !== undefined && types) checkPossible(output, types.outputs, [...at, 'output'], report);
}

/** Expressions and schemas anywhere in `expect`. */
function checkExpected(value: Json, path: Path, checking: Checking): void {
  if (typeof value === 'string' && value.includes('${')) {
    try {
      compileText(value, expectOptions(checking.host.functions));
    } catch (error) {
      if (!(error instanceof ExpressionSyntaxError)) throw error;
      checking.report({ path, message: error.message, offset: error.index, length: error.length });
    }
  } else if (Array.isArray(value)) {
    for (const [i, inner] of (value as readonly Json[]).entries()) checkExpected(inner, [...path, i], checking);
  } else if (isMap(value)) {
    if (isSchema(value)) checkJsonSchema(value.schema as JsonObject, [...path, 'schema'], checking.report);
    else for (const [key, inner] of Object.entries(value)) checkExpected(inner, [...path, key], checking);
  }
}

/** What the definition can never give is refused: a test that expects it would fail for ever. */
function checkPossible(value: Json, type: Type, path: Path, report: Checking['report']): void {
  const members = membersOf(type);
  if (members.some(({ kind }) => kind === 'any') || (typeof value === 'string' && value.includes('${'))) return;
  if (isMap(value)) {
    if (isSchema(value)) return;
    const records = members.filter((member) => member.kind === 'record');
    const [record] = records;
    if (!record) {
      refuse();
      return;
    }
    if (records.length > 1) return;
    for (const [key, inner] of Object.entries(value)) {
      const field = record.fields.get(key);
      if (field && inner === null && field.optional) continue;
      if (field) checkPossible(inner, field.type, [...path, key], report);
      else if (record.rest === 'closed')
        report({
          path: [...path, key],
          message: `there is no \`${key}\` in it, only ${listOfNames([...record.fields.keys()].map(quoted))}`,
          suggestion: suggestName(key, record.fields.keys()),
          key: true,
        });
    }
    return;
  }
  if (Array.isArray(value)) {
    const list = members.find((member) => member.kind === 'list');
    if (!list) refuse();
    else
      for (const [i, inner] of (value as readonly Json[]).entries())
        checkPossible(inner, list.item, [...path, i], report);
    return;
  }
  if (!members.some((member) => holds(member, value as string | number | boolean | null))) refuse();

  function refuse(): void {
    report({ path, message: `can never be this: it is ${nameOfType(type)}` });
  }
}

function holds(type: Type, value: string | number | boolean | null): boolean {
  if (value === null) return type.kind === 'null';
  if (type.kind !== typeof value) return false;
  return !('values' in type) || !type.values || type.values.includes(value);
}
