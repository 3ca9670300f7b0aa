/** Finds `{{ x }}` in the values of a definition, which other systems read as an expression and this language as plain text. */

import type { Json } from '../../../base/json/json.ts';
import { quoted } from '../../../base/wording.ts';
import type { Path, Problem } from '../../source/problem.ts';

// Three braces and signs such as `{{#if x}}` belong to a template of another system.
const BRACES = /(?<!\{)\$?\{\{\s*([A-Za-z_][\w.[\]'"-]*)\s*\}\}(?!\})/;

/** The config keys of the built-in operations whose text may be a template for another system. Other operations may have any. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  api: ['body'],
  storage: ['value'],
  code: [],
  think: ['schema', 'tools'],
  tools: [],
  pdf: [],
};

/** Reports each text with `{{ x }}` as a warning. */
export function warnBraces(value: Json, path: Path, report: (problem: Problem) => void): void {
  if (typeof value === 'string') {
    const found = bracesIn(value);
    if (found) report({ path, ...found, warning: true });
  } else if (Array.isArray(value)) {
    value.forEach((inner, i) => {
      warnBraces(inner, [...path, i], report);
    });
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) warnBraces(inner, [...path, key], report);
  }
}

/** Like {@link warnBraces}, without the parts of the config that may be templates. */
export function warnConfigBraces(
  operation: string,
  config: Json,
  texts: Readonly<Record<string, string>>,
  path: Path,
  report: (problem: Problem) => void,
): void {
  const templates = Object.hasOwn(TEMPLATES, operation) ? TEMPLATES[operation] : undefined;
  if (!templates) return;
  const own = Object.keys(texts).filter((path) => texts[path] !== 'sql');
  for (const [key, value] of Object.entries(config as object)) {
    if (!templates.includes(key) && !own.includes(key)) warnBraces(value, [...path, key], report);
  }
}

/** The place of `{{ x }}` in a text, and what to write; undefined when there is none. `${{ x }}` counts too. */
export function bracesIn(text: string): Pick<Problem, 'message' | 'offset' | 'length'> | undefined {
  const found = text.includes('{{') ? BRACES.exec(text) : null;
  if (!found || isInExpression(text, found.index)) return undefined;
  const [written, inside = ''] = found;
  const message = `${quoted(written)} is not an expression here: write ${quoted(`\${${inside}}`)}`;
  return { message, offset: found.index, length: written.length };
}

// A text inside an expression, such as an argument of `replace`.
function isInExpression(text: string, index: number): boolean {
  const before = text.slice(0, index);
  return before.lastIndexOf('${') > before.lastIndexOf('}');
}
