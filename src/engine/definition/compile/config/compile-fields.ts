/** Compiles the fields of a step that contain expressions, and reports each problem at its place. */

import type { Json } from '../../../base/json/json.ts';
import { valueAt } from '../../../base/json/value-at.ts';
import type { CompiledGuard } from '../../../compiled/compiled-ensemble.ts';
import type { ExpressionScope } from '../../../compiled/expression-scope.ts';
import type { NameSlot } from '../../../compiled/name-slot.ts';
import { compileGuard as compileGuardText } from '../../../expression/compile/compile-guard.ts';
import { compileText } from '../../../expression/compile/compile-text.ts';
import { compileValue, type ValueReference } from '../../../expression/compile/compile-value.ts';
import type {
  CompiledExpression,
  CompileOptions,
  ExpressionWarning,
  Reference,
} from '../../../expression/compile/compiled-expression.ts';
import type { Evaluate } from '../../../expression/evaluation.ts';
import { ExpressionSyntaxError } from '../../../expression/syntax/expression-syntax-error.ts';
import type { Report } from '../../forms/check-shape.ts';
import type { Path } from '../../source/problem.ts';
import { bracesIn, warnBraces } from '../names/double-braces.ts';
import type { Names } from '../names/names.ts';
import type { CompileHost } from '../triggers/compile-host.ts';
import { type ConfigTexts, createTextReader, textPath } from './compile-texts.ts';
import { refuseSecret } from './refuse-secrets.ts';

export interface CompiledField {
  readonly evaluate: Evaluate<ExpressionScope>;
  readonly constant: boolean;
  readonly readsState: boolean;
  readonly references: readonly ValueReference[];
}

interface ValueOptions {
  readonly templates?: boolean | undefined;
  readonly texts?: ConfigTexts | undefined;
}

export interface FieldCompiler {
  /**
   * Compiles a value with expressions in its texts.
   *
   * @param options - `templates`: `{{ x }}` may be meant as plain text. `texts`: what an operation reads in its own way
   */
  value(value: Json, path: Path, options?: ValueOptions): CompiledField;
  /** Compiles a condition: an expression or a boolean. */
  guard(guard: string | boolean, path: Path): CompiledGuard;
  /** Compiles a text that must be one `${...}`. @param expected - what it must be, for messages */
  whole(text: string, path: Path, expected: string): CompiledField;
}

/** @param names - the names that expressions at this level of the flow may read */
export function createFieldCompiler(names: Names, host: CompileHost, report: Report): FieldCompiler {
  const options: CompileOptions<ExpressionScope> = host.functions ? { names, functions: host.functions } : { names };
  const attempt = (
    text: string,
    path: Path,
    compile: () => CompiledExpression<ExpressionScope>,
  ): CompiledExpression<ExpressionScope> | undefined => {
    try {
      const compiled = compile();
      refuseShown(compiled.references, () => path, host, report);
      for (const warning of compiled.warnings) reportWarning(warning, path, report);
      return compiled;
    } catch (error) {
      if (!(error instanceof ExpressionSyntaxError)) throw error;
      reportSyntax(error, text, path, host, report);
      return undefined;
    }
  };
  return {
    value(value, path, { templates = false, texts } = {}) {
      const reportInner = (inner: Path, error: ExpressionSyntaxError) => {
        const isSpecial = texts !== undefined && Object.hasOwn(texts.texts, textPath(inner));
        reportSyntax(error, isSpecial ? undefined : valueAt(value, inner), [...path, ...inner], host, report);
      };
      const compiled = compileValue(value, options, reportInner, texts && createTextReader(texts, options));
      if (!templates) warnBraces(value, path, report);
      refuseShown(compiled.references, (reference) => [...path, ...(reference as ValueReference).at], host, report);
      for (const { at, ...warning } of compiled.warnings) reportWarning(warning, [...path, ...at], report);
      return { ...compiled, readsState: readsState(compiled.references) };
    },
    guard(guard, path) {
      if (typeof guard === 'boolean') return { evaluate: () => guard, reads: [], readsState: false };
      const compiled = attempt(guard, path, () => compileGuardText(guard.trimEnd(), options));
      if (!compiled) return { evaluate: () => false, reads: [], readsState: false };
      return {
        evaluate: compiled.evaluate,
        reads: guardReads(compiled, names),
        readsState: readsState(compiled.references),
      };
    },
    whole(text, path, expected) {
      const compiled = attempt(text, path, () => compileWhole(text, expected, options));
      const references = (compiled?.references ?? []).map((reference) => ({ ...reference, at: [] }));
      return {
        evaluate: compiled?.evaluate ?? (() => null),
        constant: compiled?.constant ?? true,
        readsState: readsState(references),
        references,
      };
    },
  };
}

// Refuses a bare expression, which would be plain text, and text around an expression, which would turn its list into text.
function compileWhole(
  text: string,
  expected: string,
  options: CompileOptions<ExpressionScope>,
): CompiledExpression<ExpressionScope> {
  const example = `must be ${expected}, such as \`\${input.items}\``;
  const open = text.indexOf('${');
  if (open < 0) throw new ExpressionSyntaxError(example, 0, text.length);
  const before = text.slice(0, open).trim().length;
  if (before > 0) throw new ExpressionSyntaxError(`${example}, without text around it`, text.search(/\S/), before);
  try {
    return compileGuardText(text, options);
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError) || !isRightAsText(text, options)) throw error;
    throw new ExpressionSyntaxError(`${example}, without text around it`, error.index, error.length);
  }
}

function isRightAsText(text: string, options: CompileOptions<ExpressionScope>): boolean {
  try {
    compileText(text, options);
    return true;
  } catch {
    return false;
  }
}

function reportSyntax(
  error: ExpressionSyntaxError,
  text: unknown,
  path: Path,
  { lenient }: CompileHost,
  report: Report,
): void {
  const { message, index: offset, length, suggestion, notConfigured, inKey } = error;
  if (notConfigured && lenient) return;
  if (inKey) {
    report({ path, message, key: true });
    return;
  }
  const braces = typeof text === 'string' ? bracesIn(text) : undefined;
  if (braces?.offset !== undefined && offset >= braces.offset && offset < braces.offset + (braces.length ?? 0)) {
    report({ path, ...braces });
    return;
  }
  report({ path, message, offset, length, suggestion, ...(notConfigured && { notConfigured }) });
}

// The page of a signal link shows its payload to everyone who has the link.
function refuseShown(
  references: readonly Reference[],
  at: (reference: Reference) => Path,
  { secretNames }: CompileHost,
  report: Report,
): void {
  for (const reference of references) {
    if (reference.shownBy === undefined) continue;
    refuseSecret(reference, at(reference), `${reference.shownBy}, whose page shows it`, secretNames, report);
  }
}

function reportWarning(warning: ExpressionWarning, path: Path, report: Report): void {
  const { message, index: offset, length, suggestion } = warning;
  report({ path, message, offset, length, suggestion, warning: true });
}

function readsState(references: readonly { readonly name: string }[]): boolean {
  return references.some((reference) => reference.name === 'state');
}

// Only a guard that reads `.failed` or `.success` of an agent can handle the failure of this agent.
function guardReads(compiled: CompiledExpression<ExpressionScope>, names: Names): NameSlot[] {
  const reads = new Set<NameSlot>();
  for (const { name, path } of compiled.references) {
    const found = path[0] === 'failed' || path[0] === 'success' ? names.find(name) : undefined;
    if (found) reads.add(found.slot);
  }
  return [...reads];
}
