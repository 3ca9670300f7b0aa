/** Compiles the texts of a config that its operation reads in its own way: templates and SQL. */

import type { Json } from '../../../base/json/json.ts';
import type { ExpressionScope } from '../../../compiled/expression-scope.ts';
import { RESERVED_NAMES } from '../../../ensemble/name.ts';
import { compileSql } from '../../../expression/compile/compile-sql.ts';
import { type CompiledText, compileText } from '../../../expression/compile/compile-text.ts';
import type {
  CompileOptions,
  NameResolution,
  NameResolver,
  PathSegment,
} from '../../../expression/compile/compiled-expression.ts';
import type { Evaluate } from '../../../expression/evaluation.ts';
import { readIndex, readKey } from '../../../expression/syntax/read-member.ts';
import type { NeededValue } from '../../../operation/needed-value.ts';
import type { Operation } from '../../../operation/operation.port.ts';
import { refuseNull } from './refuse-null.ts';

/** What is known about the data of templates when a definition is loaded. */
export interface TemplateData {
  /** Whether the agent's input has a field of this name. */
  has(name: string): boolean;
  /** Whether the data may have a field of this name that is not known now. */
  mayHave(name: string): boolean;
  /** The secret that the field of this name may hold. */
  secretOf(name: string): string | undefined;
}

/** The texts of one config that are not read as everywhere. */
export interface ConfigTexts {
  readonly texts: NonNullable<Operation['texts']>;
  readonly data: TemplateData;
  /** Where null is refused when a step runs. */
  readonly needs: readonly NeededValue[];
  /** Filled during the compilation: how each template is filled in, by its path. */
  readonly templates: Map<string, Evaluate<ExpressionScope>>;
}

/** The path of a key as `Operation.texts` writes it. */
export function textPath(path: readonly PathSegment[]): string {
  return path.join('.');
}

/** Compiles a text of a config; undefined when it is read as everywhere. */
export function createTextReader(
  { texts, data, needs, templates }: ConfigTexts,
  plainOptions: CompileOptions<ExpressionScope>,
) {
  const names = templateNames(plainOptions.names, data);
  return (path: readonly PathSegment[], text: string): CompiledText<ExpressionScope> | undefined => {
    const key = textPath(path);
    const kind = Object.hasOwn(texts, key) ? texts[key] : undefined;
    const checkPart = refuseNull(needs, [...path], plainOptions.names);
    const options = checkPart ? { ...plainOptions, checkPart } : plainOptions;
    if (kind === undefined) return checkPart && text.includes('${') ? compileText(text, options) : undefined;
    if (kind === 'sql') return compileSql(text, options);
    const compiled = compileText(text, options, { names, escapes: kind === 'html' });
    if (!compiled.isWhole) templates.set(key, compiled.evaluate);
    return compiled;
  };
}

type NameProblem = Extract<NameResolution<ExpressionScope>, { readonly problem: string }>;

/** The names of `{{ ... }}`: a field of the data wins over a name of the flow. A name that is nothing else is a field of the data. */
function templateNames(names: NameResolver<ExpressionScope>, data: TemplateData): NameResolver<ExpressionScope> {
  return {
    get hyphenated() {
      return names.hyphenated;
    },
    unknownSignal: names.unknownSignal,
    parsed: names.parsed,
    readsData: true,
    resolve(name, path): NameResolution<ExpressionScope> {
      const found = names.resolve(name, path);
      if (RESERVED_NAMES.has(name)) return found;
      const secret = data.secretOf(name);
      if ('problem' in found) {
        if (found.isUnknown && !data.has(name) && !data.mayHave(name)) return notInInput(found);
        const isData = found.isUnknown || data.has(name);
        return { read: readField(name), consumed: 0, secret, ...(!isData && { warning: found.problem }) };
      }
      const { read, consumed, warning } = found;
      const inner = path.slice(0, consumed);
      return {
        read(scope) {
          const field = dataField(scope, name);
          return field === undefined ? read(scope) : inner.reduce(readMember, field);
        },
        consumed,
        secret: found.secret ?? secret,
        ...(warning !== undefined && !data.has(name) && { warning }),
      };
    },
  };
}

function notInInput(found: NameProblem): NameProblem {
  return { ...found, problem: `${found.problem}, and the agent's input has no such field` };
}

/** Reads a field of the data. One that is missing is null, and is noted. */
export function readField(name: string): (scope: ExpressionScope) => Json {
  return (scope) => {
    const field = dataField(scope, name);
    if (field === undefined) scope.missing = name;
    return field ?? null;
  };
}

function dataField({ data }: ExpressionScope, name: string): Json | undefined {
  return Object.hasOwn(data, name) ? data[name] : undefined;
}

function readMember(value: Json, key: PathSegment): Json {
  return typeof key === 'string' ? readKey(value, key) : readIndex(value, key);
}
