/** Reads the text of a model's answer as JSON that fits a schema. */

import { copyJson, type Json, JsonError } from '../../engine/base/json/json.ts';
import { nestsTooDeep } from '../../engine/base/json/json-text.ts';
import { describeProblems } from '../../engine/json-schema/check-by-schema.ts';
import type { ValueCheck } from '../../engine/json-schema/rule.ts';

/** The start of a code fence. Its end is searched as text, because a pattern would be slow on hostile answers. */
const FENCE = /```(?:json)?[^\S\n]*\n/i;

/** @returns the value with defaults, or what is wrong with the text, for the model and for people */
export function readObject(text: string, check: ValueCheck): { readonly value: Json } | { readonly problem: string } {
  const parsed = parse(text) ?? parse(insideFence(text));
  if (!parsed) return { problem: 'it is not JSON' };
  if ('problem' in parsed) return parsed;
  const result = check(parsed.value);
  return 'value' in result ? result : { problem: describeProblems(result.problems) };
}

function insideFence(text: string): string {
  const open = FENCE.exec(text);
  if (!open) return '';
  const inside = text.slice(open.index + open[0].length);
  const end = inside.lastIndexOf('```');
  return end < 0 ? inside : inside.slice(0, end);
}

/** @returns undefined for text that is not JSON */
function parse(text: string): { readonly value: Json } | { readonly problem: string } | undefined {
  if (nestsTooDeep(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  try {
    return { value: copyJson(value) };
  } catch (error) {
    if (error instanceof JsonError) return { problem: error.message };
    throw error;
  }
}
