/** Compiles the fields of a step that hold expressions, and reports what is wrong in each at its place. */

import { compileGuard as compileGuardText } from '../expression/compile-guard.ts';
import { compileText } from '../expression/compile-text.ts';
import { compileValue, type ValueReference } from '../expression/compile-value.ts';
import type {
  CompiledExpression,
  CompileOptions,
  ExpressionWarning,
  Reference,
} from '../expression/compiled-expression.ts';
import type { Evaluate } from '../expression/evaluation.ts';
import { ExpressionSyntaxError } from '../expression/expression-syntax-error.ts';
import type { Json } from '../json.ts';
import type { Report } from './check-shape.ts';
import type { CompileHost } from './compile-host.ts';
import type { CompiledGuard } from './compiled-ensemble.ts';
import type { NameSlot, Names } from './names.ts';
import type { Path } from './problem.ts';
import { refuseSecret } from './refuse-secrets.ts';
import type { Scope } from './scope.ts';

export interface CompiledField {
  readonly evaluate: Evaluate<Scope>;
  readonly constant: boolean;
  readonly readsState: boolean;
  readonly references: readonly ValueReference[];
}

export interface FieldCompiler {
  /** Any value with expressions in its texts. */
  value(value: Json, path: Path): CompiledField;
  /** A condition; a boolean is one too. */
  guard(guard: string | boolean, path: Path): CompiledGuard;
  /** A text that must be one `${...}`. @param wanted - what it must give, in words */
  whole(text: string, path: Path, wanted: string): CompiledField;
}

/** @param names - what expressions at this level of the flow may read */
export function createFieldCompiler(names: Names, host: CompileHost, report: Report): FieldCompiler {
  const options: CompileOptions<Scope> = host.functions ? { names, functions: host.functions } : { names };
  const attempt = (path: Path, compile: () => CompiledExpression<Scope>): CompiledExpression<Scope> | undefined => {
    try {
      const compiled = compile();
      refuseShown(compiled.references, () => path, host, report);
      for (const warning of compiled.warnings) reportWarning(warning, path, report);
      return compiled;
    } catch (error) {
      if (!(error instanceof ExpressionSyntaxError)) throw error;
      reportSyntax(error, path, host, report);
      return undefined;
    }
  };
  return {
    value(value, path) {
      const compiled = compileValue(value, options, (inner, error) =>
        reportSyntax(error, [...path, ...inner], host, report),
      );
      refuseShown(compiled.references, (reference) => [...path, ...(reference as ValueReference).at], host, report);
      for (const { at, ...warning } of compiled.warnings) reportWarning(warning, [...path, ...at], report);
      return { ...compiled, readsState: readsState(compiled.references) };
    },
    guard(guard, path) {
      if (typeof guard === 'boolean') return { evaluate: () => guard, reads: [], readsState: false };
      const compiled = attempt(path, () => compileGuardText(guard.trimEnd(), options));
      if (!compiled) return { evaluate: () => false, reads: [], readsState: false };
      return {
        evaluate: compiled.evaluate,
        reads: guardReads(compiled, names),
        readsState: readsState(compiled.references),
      };
    },
    whole(text, path, wanted) {
      const compiled = attempt(path, () => compileWhole(text, wanted, options));
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

// A bare expression would be read as text, and text around one would turn its list into text.
function compileWhole(text: string, wanted: string, options: CompileOptions<Scope>): CompiledExpression<Scope> {
  const example = `must be ${wanted}, such as \`\${input.items}\``;
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

function isRightAsText(text: string, options: CompileOptions<Scope>): boolean {
  try {
    compileText(text, options);
    return true;
  } catch {
    return false;
  }
}

function reportSyntax(error: ExpressionSyntaxError, path: Path, { lenient }: CompileHost, report: Report): void {
  const { message, index: offset, length, suggestion, notConfigured } = error;
  if (notConfigured && lenient) return;
  report({ path, message, offset, length, suggestion, ...(notConfigured && { notConfigured }) });
}

// The page of a link shows its payload to whoever has the link.
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

// Only a guard that looks at an agent's `.failed` or `.success` can handle its failure.
function guardReads(compiled: CompiledExpression<Scope>, names: Names): NameSlot[] {
  const reads = new Set<NameSlot>();
  for (const { name, path } of compiled.references) {
    const found = path[0] === 'failed' || path[0] === 'success' ? names.find(name) : undefined;
    if (found) reads.add(found.slot);
  }
  return [...reads];
}
