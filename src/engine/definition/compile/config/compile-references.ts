/**
 * The references to components in the config of an agent (the specification's reference syntax). When a definition is loaded, the texts are not
 * known: an expression without a value is checked in the place of each. Before an attempt, the texts are compiled and put there.
 */

import { messageOf, OrchestratorError } from '../../../base/errors.ts';
import { isMap } from '../../../base/json/is-map.ts';
import { formatPath, type Json, type JsonObject } from '../../../base/json/json.ts';
import { replaceAt } from '../../../base/json/value-at.ts';
import { quoted } from '../../../base/wording.ts';
import type { CompiledAgentStep, CompiledReferences } from '../../../compiled/compiled-ensemble.ts';
import type { ExpressionScope } from '../../../compiled/expression-scope.ts';
import {
  type ComponentKind,
  type ComponentMetadata,
  isReference,
  type ResolvedComponent,
  readReference,
} from '../../../component/component.ts';
import type { TemplateEngine } from '../../../component/template-engine.port.ts';
import { compileSql } from '../../../expression/compile/compile-sql.ts';
import { compileText } from '../../../expression/compile/compile-text.ts';
import type { CompileOptions, NameResolver } from '../../../expression/compile/compiled-expression.ts';
import type { Evaluate } from '../../../expression/evaluation.ts';
import type { FunctionTable } from '../../../expression/functions/function-table.ts';
import { ExpressionSyntaxError } from '../../../expression/syntax/expression-syntax-error.ts';
import type { AnyOperation } from '../../../operation/operation.port.ts';
import type { Report } from '../../forms/check-shape.ts';
import type { Path } from '../../source/problem.ts';
import { readSource } from '../../source/read-source.ts';
import { readField, textPath } from './compile-texts.ts';

type ConfigPath = readonly (string | number)[];

interface WrittenReference {
  /** Where its text goes. */
  readonly path: ConfigPath;
  /** Where it was written. */
  readonly at: ConfigPath;
  readonly text: string;
}

/** The config of an agent without its references. */
export interface ConfigWithoutReferences {
  /** With an expression in the place of each reference. */
  readonly values: JsonObject;
  readonly references: readonly WrittenReference[];
}

/** What a value is that is not known when the definition is loaded. */
export const UNKNOWN = '${null}';
const UNKNOWN_QUERY = 'SELECT 1';

/** The key of a config whose value is a stored config. Its keys are added to the written ones. */
const BASE = '<<';

/**
 * Takes the references out of a config. A `template` is the `html` of its operation. A config that is one reference is the same as one under `<<`.
 * @param texts - of the operation
 */
export function takeReferences(
  written: JsonObject | string,
  texts: NonNullable<AnyOperation['texts']>,
): ConfigWithoutReferences {
  const { template, ...named } = typeof written === 'string' ? ({ [BASE]: written } as JsonObject) : written;
  const { [BASE]: base, ...others } = named;
  const rest = isReference(base) ? others : named;
  const isHtml = isReference(template) && texts.html === 'html' && rest.html === undefined;
  const config = template === undefined ? rest : { ...rest, [isHtml ? 'html' : 'template']: template };
  const references: WrittenReference[] = [];
  if (isReference(base)) references.push({ path: [], at: typeof written === 'string' ? [] : [BASE], text: base });
  const take = (value: Json, path: ConfigPath): Json => {
    if (isReference(value)) {
      const at = isHtml && path.length === 1 && path[0] === 'html' ? ['template'] : path;
      references.push({ path, at, text: value });
      return texts[textPath(path)] === 'sql' ? UNKNOWN_QUERY : UNKNOWN;
    }
    if (Array.isArray(value)) return value.map((item, i) => take(item, [...path, i]));
    if (!isMap(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, take(item as Json, [...path, key])]));
  };
  const values = take(config, []) as JsonObject;
  return { values, references };
}

const ALLOWED: Readonly<Record<string, readonly ComponentKind[]>> = {
  prompt: ['prompt', 'template'],
  system: ['prompt', 'template'],
  query: ['query'],
  html: ['template'],
};

const BASES: readonly ComponentKind[] = ['config'];

/** Reports references that can't be read, and kinds that don't belong there. */
export function checkReferences(references: readonly WrittenReference[], path: Path, report: Report): void {
  for (const { path: inner, at: written, text } of references) {
    const at = [...path, ...written];
    // The parts with expressions are checked when they are known.
    const read = readReference(text.replace(/\$\{[^}]*\}/g, 'x'));
    if ('problem' in read) {
      report({ path: at, message: read.problem });
      continue;
    }
    const { kind } = read.reference;
    const allowed = (inner.length === 0 ? BASES : inner.length === 1 ? ALLOWED[inner[0] as string] : undefined) ?? [];
    if (allowed.length > 0 && !allowed.includes(kind))
      report({ path: at, message: `takes a ${allowed.join(' or a ')}, such as \`${allowed[0]}://name@production\`` });
  }
}

/** What a stored config may bring into the config of an agent. */
export interface ComponentKeys {
  /** The keys that the agent names. Undefined: it names none. */
  readonly named: readonly string[] | undefined;
  /** The keys that are written next to the reference, and win. */
  readonly written: readonly string[];
  /** Whether something secret may be in what is written, which goes where the url says. */
  readonly isSecret: boolean;
}

/** The keys that decide what is called, or with whose rights. */
const TRUSTED = ['url', 'script', 'auth', 'provider'];
const READS_ENV = /\$\{[^}]*\benv\b/;

export function componentKeys(
  named: readonly string[] | undefined,
  values: JsonObject,
  input: Json | undefined,
): ComponentKeys {
  const written = Object.keys(values);
  const isSecret =
    ['auth', 'headers'].some((key) => written.includes(key)) || READS_ENV.test(JSON.stringify([values, input ?? null]));
  return { named, written, isSecret };
}

/** @throws INVALID_DEFINITION, with the line that allows it */
function checkBrought(
  { kind, name, version }: ResolvedComponent,
  config: JsonObject,
  agent: string,
  { named, written, isSecret }: ComponentKeys,
): void {
  const brought = Object.keys(config).filter((key) => !written.includes(key));
  const mayBring = (key: string) => named?.includes(key) ?? (key === 'url' ? !isSecret : !TRUSTED.includes(key));
  const refused = brought.find((key) => !mayBring(key));
  if (refused === undefined) return;
  const why = named ? 'is not in its `fromComponent`' : 'decides what is called, and with which secrets';
  const message = `${kind}://${name}@${version} brings ${quoted(refused)} to agent ${quoted(agent)}, which ${why}; to allow it, write next to the \`config\` of the agent: \`fromComponent: [${brought.join(', ')}]\``;
  throw new OrchestratorError('INVALID_DEFINITION', message);
}

export interface ReferenceCompiler {
  readonly operation: AnyOperation;
  /** For the reference under `<<`. */
  readonly keys: ComponentKeys;
  readonly functions: FunctionTable | undefined;
  readonly templates?: TemplateEngine | undefined;
  /** Whether the texts are filled in with the input of the agent alone. */
  readonly readsOnlyInput: boolean;
  /** The references, each compiled to its text; the last one without, if a route has it. */
  readonly all: readonly { readonly path: ConfigPath; readonly evaluate: Evaluate<ExpressionScope> | undefined }[];
}

/** How many versions of one agent's texts are kept compiled. */
const MAX_FILLED = 20;

export function compileReferences({
  operation,
  keys,
  functions,
  templates,
  readsOnlyInput,
  all,
}: ReferenceCompiler): CompiledReferences {
  const filled = new Map<string, CompiledAgentStep>();
  let last: { readonly components: readonly ResolvedComponent[]; readonly made: CompiledAgentStep } | undefined;
  return {
    all: all.flatMap(({ evaluate }) => evaluate ?? []),
    fill(step, components) {
      if (last && components.every((component, i) => component === last?.components[i])) return last.made;
      const key = components.map(({ kind, name, version }) => `${kind}://${name}@${version}`).join(' ');
      const known = filled.get(key);
      if (known) {
        last = { components, made: known };
        return known;
      }
      const parts = components.map((component, i) => {
        const { path } = all[i] as (typeof all)[number];
        const compiled = compileContent(component, path, operation.texts ?? {}, { functions, templates });
        if (path.length === 0 && isMap(compiled.config)) checkBrought(component, compiled.config, step.name, keys);
        return { path, component, ...compiled, evaluate: withDefaults(compiled.evaluate, component.metadata) };
      });
      const made = withParts(step, parts, readsOnlyInput);
      const [oldest] = filled.keys();
      if (filled.size >= MAX_FILLED && oldest !== undefined) filled.delete(oldest);
      filled.set(key, made);
      last = { components, made };
      return made;
    },
  };
}

interface CompiledContent {
  /** The value of a config. */
  readonly config?: Json;
  readonly evaluate: Evaluate<ExpressionScope>;
  /** Whether it can be filled in with other data. */
  readonly isTemplate: boolean;
}

interface FilledPart extends CompiledContent {
  readonly path: ConfigPath;
  readonly component: ResolvedComponent;
}

function withParts(step: CompiledAgentStep, parts: readonly FilledPart[], readsOnlyInput: boolean): CompiledAgentStep {
  const templates = new Map(step.templates);
  for (const { path, isTemplate, evaluate } of parts) if (isTemplate) templates.set(textPath(path), evaluate);
  const [base] = parts.filter(({ path }) => path.length === 0);
  const inner = parts.filter((part) => part !== base);
  const defaults = parts.map(({ component }) => (step.operation.name === 'think' ? promptDefaults(component) : {}));
  return {
    ...step,
    staticConfig: undefined,
    takesPrompt: step.takesPrompt && !parts.some(({ path: [key] }) => key === 'prompt'),
    templates,
    config(scope) {
      if (readsOnlyInput) for (const { component } of parts) checkVariables(component, step.name, scope);
      const config: Record<string, Json> = Object.assign({}, ...defaults, base?.evaluate(scope), step.config(scope));
      for (const {
        path: [key, ...rest],
        evaluate,
      } of inner)
        config[key as string] = replaceAt(config[key as string] as Json, rest, evaluate(scope));
      return config;
    },
  };
}

/** @throws INVALID_INPUT for a variable of a component that the input of the agent lacks */
function checkVariables(component: ResolvedComponent, agent: string, { data }: ExpressionScope): void {
  if (!component.metadata.variables) return;
  // A field that is null is as good as none.
  const given = Object.keys(data).filter((field) => data[field] !== null);
  const problem = variableProblem(component, agent, given);
  if (problem !== undefined) throw new OrchestratorError('INVALID_INPUT', problem);
}

/** @returns which variables of a component the input of an agent lacks */
export function variableProblem(
  { kind, name, version, metadata }: ResolvedComponent,
  agent: string,
  fields: readonly string[],
): string | undefined {
  const required = metadata.variables?.flatMap((one) =>
    typeof one === 'string' ? one : (one.default ?? null) === null ? one.name : [],
  );
  const missing = required?.filter((variable) => !fields.includes(variable)) ?? [];
  if (missing.length === 0) return undefined;
  const given = fields.map(quoted).join(', ') || 'nothing';
  const needs = `${kind}://${name}@${version} needs ${missing.map(quoted).join(', ')} in the input of agent ${quoted(agent)}`;
  return `${needs}, which has ${given}`;
}

/** Fills in the defaults of the fields that the input lacks, or that are null. */
function withDefaults(
  evaluate: Evaluate<ExpressionScope>,
  { variables = [] }: ComponentMetadata,
): Evaluate<ExpressionScope> {
  const defaults = variables.flatMap((one) => (typeof one === 'string' || one.default === undefined ? [] : [one]));
  if (defaults.length === 0) return evaluate;
  return (scope) => {
    const given = scope.data;
    const missing = defaults.filter(({ name }) => (Object.hasOwn(given, name) ? given[name] : null) === null);
    scope.data = { ...given, ...Object.fromEntries(missing.map((one) => [one.name, one.default as Json])) };
    try {
      return evaluate(scope);
    } finally {
      scope.data = given;
    }
  };
}

/** What the metadata of a prompt sets for the agents that use it. */
function promptDefaults({ kind, metadata }: ResolvedComponent): JsonObject {
  if (kind !== 'prompt') return {};
  const { provider, model, temperature, maxTokens } = metadata;
  const defaults = { provider, model, temperature, maxTokens };
  return Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** @throws INVALID_DEFINITION for a text that can't be compiled */
function compileContent(
  component: Pick<ResolvedComponent, 'kind' | 'content' | 'name' | 'version'>,
  path: ConfigPath,
  texts: NonNullable<AnyOperation['texts']>,
  language: TextLanguage,
): CompiledContent {
  const { kind, name, version, content } = component;
  try {
    if (kind === 'config') {
      const value = readComponentConfig(content);
      if (path.length === 0 && !isMap(value)) throw new ExpressionSyntaxError('it must be a map of settings', 0, 0);
      return { evaluate: () => value, isTemplate: false, config: value };
    }
    if (kind === 'template' && !language.templates && HAS_TAGS.test(content)) throw noEngine(component);
    const text = texts[textPath(path)];
    const compiled = compileComponentText(kind, content, text === 'html', language);
    return { evaluate: compiled.evaluate, isTemplate: kind !== 'query' };
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    const message = `${kind}://${name}@${version} in ${formatPath(['config', ...path])}: ${error.message}`;
    throw new OrchestratorError('INVALID_DEFINITION', message);
  }
}

/** Reads the text of a config: YAML or JSON. @throws ExpressionSyntaxError */
export function readComponentConfig(content: string): Json {
  const read = readSource(content);
  if (read.ok) return read.value;
  throw new ExpressionSyntaxError(read.issues[0]?.message ?? 'it can not be read', 0, 0);
}

/**
 * Compiles the text of a prompt, a template or a query. It may read the input, and with `{{ ... }}` the fields of the agent's input. It may not read
 * variables, results and state: who changes a text must not reach what the flow keeps from it.
 * @throws ExpressionSyntaxError
 */
export function compileComponentText(
  kind: Exclude<ComponentKind, 'config'>,
  content: string,
  escapes: boolean,
  { functions, templates }: TextLanguage,
): { readonly evaluate: Evaluate<ExpressionScope> } {
  if (kind === 'template' && templates) return compileWithEngine(content, escapes, templates);
  const options: CompileOptions<ExpressionScope> = { names: INPUT_ONLY, ...(functions && { functions }) };
  if (kind === 'query') return compileSql(content, options);
  return compileText(content, options, { names: FIELDS, escapes });
}

/** What the texts of components may be written in. */
export interface TextLanguage {
  readonly functions: FunctionTable | undefined;
  /** Of templates. Undefined: the library's own. */
  readonly templates?: TemplateEngine | undefined;
}

/** A tag of Liquid, which the library's own templates do not have. */
export const HAS_TAGS = /\{%/;

function noEngine({ name, version }: Pick<ResolvedComponent, 'name' | 'version'>): OrchestratorError {
  const message = `template://${name}@${version} has \`{% ... %}\`: set the option \`templates: liquidTemplates()\` of ensemble-orchestrator/liquid`;
  return new OrchestratorError('NOT_CONFIGURED', message);
}

function compileWithEngine(content: string, escapes: boolean, templates: TemplateEngine) {
  let render: ReturnType<TemplateEngine['compile']>;
  try {
    render = templates.compile(content, { escapes });
  } catch (error) {
    throw new ExpressionSyntaxError(messageOf(error), 0, 0);
  }
  const evaluate: Evaluate<ExpressionScope> = ({ data }) => {
    try {
      return render(data);
    } catch (error) {
      throw new OrchestratorError('EXPRESSION_ERROR', `a template can't be filled in: ${messageOf(error)}`);
    }
  };
  return { evaluate };
}

/** Compiles the expression whose value decides about a split, such as `${input.userId}`. It may read the input. @throws ExpressionSyntaxError */
export function compileSplitKey(by: string, functions: FunctionTable | undefined) {
  return compileText(by, { names: INPUT_ONLY, ...(functions && { functions }) });
}

const INPUT_ONLY: NameResolver<ExpressionScope> = {
  hyphenated: [],
  unknownSignal: () => undefined,
  resolve(name) {
    if (name === 'input') return { read: ({ data }) => data, consumed: 0 };
    return {
      problem: `${quoted(name)} can't be read here: only \`input\` can`,
      isUnknown: true,
    };
  },
};

const FIELDS: NameResolver<ExpressionScope> = {
  ...INPUT_ONLY,
  readsData: true,
  resolve(name, path) {
    if (name === 'input') return INPUT_ONLY.resolve(name, path);
    return { read: readField(name), consumed: 0 };
  },
};
