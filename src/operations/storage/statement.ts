/** Puts the values of `params` into a statement, in place of its placeholders. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import type { SqlStatement } from '../../engine/storage/data.port.ts';
import { type SqlToken, scanSql } from '../../engine/storage/sql-text.ts';

export type Params = readonly Json[] | JsonObject;

/**
 * A list is for `?` or for `$1`, and an object for `:name`. A statement with `$1` has no placeholders `?`, which is an operator of
 * Postgres there.
 *
 * @throws INVALID_INPUT for a placeholder without a value, for a value without a placeholder, and for a query with `${...}`
 */
export function withParams(statement: SqlStatement, params: Params | undefined): SqlStatement {
  if (params === undefined) return statement;
  if (statement.values.length > 0)
    throw invalid('`query` has `${...}`, so `params` must be left out; write the expressions there');
  const [text = ''] = statement.strings;
  const tokens = scanSql(text).filter(({ kind }) => kind === 'placeholder');
  const strings: string[] = [];
  const values: Json[] = [];
  let from = 0;
  for (const [token, value] of isList(params) ? byPosition(tokens, params) : byName(tokens, params)) {
    strings.push(text.slice(from, token.start));
    values.push(value);
    from = token.end;
  }
  return { strings: [...strings, text.slice(from)], values };
}

type Found = readonly (readonly [token: SqlToken, value: Json])[];

function isList(params: Params): params is readonly Json[] {
  return Array.isArray(params);
}

function byPosition(tokens: readonly SqlToken[], params: readonly Json[]): Found {
  const numbered = tokens.filter(({ text }) => text.startsWith('$'));
  if (numbered.length > 0) {
    const used = numbered.map(({ text }) => Number(text.slice(1)));
    const [wanted, given] = [Math.max(...used), params.length];
    if (Math.min(...used) < 1 || wanted !== given)
      throw invalid(`\`query\` has placeholders up to $${wanted}, and \`params\` has ${given} values`);
    return numbered.map((token, i) => [token, params[(used[i] as number) - 1] as Json]);
  }
  const open = tokens.filter(({ text }) => text === '?');
  if (open.length !== params.length)
    throw invalid(`\`query\` has ${open.length} placeholders ?, and \`params\` has ${params.length} values`);
  return open.map((token, i) => [token, params[i] as Json]);
}

function byName(tokens: readonly SqlToken[], params: JsonObject): Found {
  const named = tokens.filter(({ text }) => text.startsWith(':'));
  const unused = Object.keys(params).find((name) => !named.some(({ text }) => text === `:${name}`));
  if (unused !== undefined) throw invalid(`\`query\` has no placeholder :${unused}`);
  return named.map((token) => {
    const name = token.text.slice(1);
    if (!Object.hasOwn(params, name)) throw invalid(`\`params\` has no value for :${name}`);
    return [token, params[name] as Json];
  });
}

function invalid(why: string): OrchestratorError {
  return new OrchestratorError('INVALID_INPUT', `storage: ${why}`);
}
