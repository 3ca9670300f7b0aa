/** Rewrites the errors of the YAML parser as clear messages, and leaves out errors that only follow from another error. */

import type { YamlMistake } from './parse-yaml.ts';

/** The errors worth reporting. */
export interface SelectedErrors {
  readonly errors: readonly YamlMistake[];
  /** Whether the structure of the document is uncertain. */
  readonly broken: boolean;
}

// After these errors the structure of the document is still certain.
const HARMLESS: ReadonlySet<string> = new Set([
  'TAG_RESOLVE_FAILED',
  'NON_STRING_KEY',
  'BAD_DQ_ESCAPE',
  'BAD_ALIAS',
  'BAD_DIRECTIVE',
  'BAD_SCALAR_START',
]);
// After a first error the parser continues, and reports the rest of the line or of the document as further errors.
const FOLLOW_UP = /at node end$|in YAML stream|^Implicit map keys need to be followed/;

/**
 * Leaves out errors that follow from an earlier error: all but the first error of a line, and errors after a broken node.
 *
 * @param errors - errors and warnings of the parser, in any order
 * @param lineOf - returns the line of an offset
 */
export function selectYamlErrors(errors: readonly YamlMistake[], lineOf: (offset: number) => number): SelectedErrors {
  const selected: YamlMistake[] = [];
  let lastLine = 0;
  let broken = false;
  for (const error of [...errors].sort((a, b) => a.start - b.start)) {
    const line = lineOf(error.start);
    const harmless = HARMLESS.has(error.code);
    if (!harmless && line === lastLine) continue;
    if (broken && FOLLOW_UP.test(error.message)) continue;
    selected.push(error);
    if (!harmless) {
      lastLine = line;
      broken = true;
    }
  }
  return { errors: selected, broken };
}

/**
 * Explains an error in one line: what is wrong and what was expected.
 *
 * @param error - an error of the parser
 * @param restore - returns text of the source as its author wrote it
 */
export function explainYamlError(error: YamlMistake, restore: (text: string) => string): string {
  const text = restore((error.message.split('\n')[0] as string).slice(0, 200)).replace(/[.:\s]+$/, '');
  const known = explain(error, text);
  return known ?? `not valid YAML: ${text}`;
}

function explain({ code }: YamlMistake, text: string): string | undefined {
  const is = (expectedCode: string, start: string) => code === expectedCode && text.startsWith(start);
  if (code === 'TAB_AS_INDENT') return 'not valid YAML: a tab is used as indentation; use spaces';
  if (code === 'NON_STRING_KEY') {
    return "a list, a map, an alias or a tagged value can't be a key; keys are text (put text that starts with { or [ in quotes)";
  }
  if (is('TAG_RESOLVE_FAILED', 'Unresolved tag')) {
    return `${text.replace('Unresolved', 'unknown')}; only the tags of YAML's core schema (!!str, !!int, ...) are read`;
  }
  if (is('BLOCK_AS_IMPLICIT_KEY', 'Nested mappings')) {
    return 'not valid YAML: this value continues into another `key:`; put text that contains `: ` in quotes, or indent the next key like its neighbours';
  }
  if (is('MISSING_CHAR', 'Implicit map keys')) {
    return 'not valid YAML: expected `key: value`, but there is no `:` after the key';
  }
  if (is('MISSING_CHAR', 'Missing closing')) {
    return `not valid YAML: expected the closing quote ${text.includes('"') ? '"' : "'"} before this place`;
  }
  if (text.includes('sufficiently indented and end with')) {
    return `not valid YAML: expected the closing ${text.slice(-1)} before this place, and every line inside indented`;
  }
  if (code === 'BAD_SCALAR_START') return `not valid YAML: ${text}; put the text in quotes`;
  if (text.includes('at node end')) {
    return `not valid YAML: ${text}; expected the end of the value here (check its indentation, and whether it needs quotes)`;
  }
  return undefined;
}
