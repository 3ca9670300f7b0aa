/** The keywords of JSON Schema that look at the entries of a list. */

import { canonicalJson, type Json, type JsonObject } from '../base/json/json.ts';
import { SORTED_CHARACTERS_A_STEP } from './json-limits.ts';
import { accept, attempt, type Compiler, checkPart, ofList, type Rule, reportProblem, spend } from './rule.ts';

export function items(schema: JsonObject, { compile }: Compiler): Rule {
  // In draft 7, `items` is the list, and `additionalItems` is what `items` is now.
  const isOlder = Array.isArray(schema.items);
  const first = ((isOlder ? schema.items : schema.prefixItems) ?? []) as readonly Json[];
  const rules = first.map(compile);
  const rest = isOlder ? schema.additionalItems : schema.items;
  const other = compile(rest ?? true);
  return ofList((list, run) => {
    spend(run, list.length / 4);
    if (run.seen && rest !== undefined) run.seen.all = true;
    else if (run.seen) for (let i = 0; i < rules.length; i++) run.seen.keys.add(i);
    return list.reduce<readonly Json[]>((out, _, i) => checkPart(list, out, i, rules[i] ?? other, run), list);
  });
}

export function uniqueItems({ uniqueItems: isWanted }: JsonObject): Rule {
  if (isWanted !== true) return accept;
  return ofList((list, run) => {
    const seen = new Map<string, number>();
    for (const [i, entry] of list.entries()) {
      const text = canonicalJson(entry);
      spend(run, 1 + text.length / SORTED_CHARACTERS_A_STEP);
      const before = seen.get(text);
      if (before === undefined) seen.set(text, i);
      else reportProblem(run, () => `is equal to the entry ${before}, but all entries must differ`, i);
    }
    return list;
  });
}

export function contains(schema: JsonObject, { compile }: Compiler): Rule {
  const rule = compile(schema.contains as Json);
  const { minContains: min = 1, maxContains: max = Number.POSITIVE_INFINITY } = schema;
  return ofList((list, run) => {
    let count = 0;
    for (const [i, entry] of list.entries()) {
      if (attempt(rule, entry, { ...run, seen: undefined }).hasFailed) continue;
      count += 1;
      run.seen?.keys.add(i);
    }
    const bound = count < Number(min) ? `at least ${min}` : count > Number(max) ? `at most ${max}` : undefined;
    if (bound !== undefined)
      reportProblem(run, () => `must fit \`contains\` with ${bound} of its entries, not with ${count}`);
    return list;
  });
}

/** Checks the entries that no other keyword has checked, also in the schemas that this schema refers to. */
export function unevaluatedItems(schema: JsonObject, { compile }: Compiler): Rule {
  const rule = compile(schema.unevaluatedItems as Json);
  return ofList((list, run) => {
    const { seen } = run;
    if (!seen || seen.all) return list;
    spend(run, list.length / 4);
    const out = list.reduce<readonly Json[]>(
      (so, _, i) => (seen.keys.has(i) ? so : checkPart(list, so, i, rule, run)),
      list,
    );
    seen.all = true;
    return out;
  });
}
