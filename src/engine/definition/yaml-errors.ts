/** Says in this library's words what the YAML parser found, without the errors that only follow from another. */

import type { YamlMistake } from './parse-yaml.ts';

/** The errors worth reporting. */
export interface SelectedErrors {
  readonly errors: readonly YamlMistake[];
  /** Whether the structure of the document is in doubt. */
  readonly broken: boolean;
}

// These leave no doubt about the structure of the document.
const HARMLESS: ReadonlySet<string> = new Set([
  'TAG_RESOLVE_FAILED',
  'NON_STRING_KEY',
  'BAD_DQ_ESCAPE',
  'BAD_ALIAS',
  'BAD_DIRECTIVE',
  'BAD_SCALAR_START',
]);
// After a first error the parser goes on and trips over what is left of the line or of the document.
const FOLLOW_UP = /at node end$|in YAML stream|^Implicit map keys need to be followed/;

/**
 * Leaves out what follows from an earlier error: all but the first of a line, and what is left behind a broken node.
 *
 * @param errors - errors and warnings of the parser, in any order
 * @param lineOf - line of an offset
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
 * One line: what is wrong and what was expected.
 *
 * @param error - an error of the parser
 * @param restore - gives text of the source as it was written
 */
export function explainYamlError(error: YamlMistake, restore: (text: string) => string): string {
  const said = restore((error.message.split('\n')[0] as string).slice(0, 200)).replace(/[.:\s]+$/, '');
  const known = explain(error, said);
  return known ?? `not valid YAML: ${said}`;
}

function explain({ code }: YamlMistake, said: string): string | undefined {
  const is = (wanted: string, start: string) => code === wanted && said.startsWith(start);
  if (code === 'TAB_AS_INDENT') return 'not valid YAML: a tab is used as indentation; use spaces';
  if (code === 'NON_STRING_KEY') {
    return 'a list, a map, an alias or a tagged value is no key; keys are text (text that starts with { or [ needs quotes)';
  }
  if (is('TAG_RESOLVE_FAILED', 'Unresolved tag')) {
    return `${said.replace('Unresolved', 'unknown')}; only the tags of YAML's core schema (!!str, !!int, ...) are read`;
  }
  if (is('BLOCK_AS_IMPLICIT_KEY', 'Nested mappings')) {
    return 'not valid YAML: this value goes on into another `key:`; put text that holds `: ` in quotes, or indent the next key as its neighbours';
  }
  if (is('MISSING_CHAR', 'Implicit map keys')) {
    return 'not valid YAML: expected `key: value`, but there is no `:` behind the key';
  }
  if (is('MISSING_CHAR', 'Missing closing')) {
    return `not valid YAML: expected the closing quote ${said.includes('"') ? '"' : "'"} before this place`;
  }
  if (said.includes('sufficiently indented and end with')) {
    return `not valid YAML: expected the closing ${said.slice(-1)} before this place, every line of it indented`;
  }
  if (code === 'BAD_SCALAR_START') return `not valid YAML: ${said}; put the text in quotes`;
  if (said.includes('at node end')) {
    return `not valid YAML: ${said}; expected the end of the value here (is it indented right, does it need quotes?)`;
  }
  return undefined;
}
