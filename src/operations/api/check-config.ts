/** The checks of an `api` config when a definition is loaded. */

import { isMap } from '../../engine/base/json/is-map.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { headerProblem } from '../../engine/host/http-header.ts';
import { schemaIssues } from '../../engine/json-schema/check-by-schema.ts';
import type { ConfigIssue } from '../../engine/operation/operation.port.ts';

/** The keys that say what is sent. */
const BODIES = ['body', 'form', 'multipart', 'binary'];

export const CONTENT_TYPE_OF_MULTIPART =
  "header Content-Type is set in addition to 'multipart', which sets it with the boundary of its parts; leave the header out";

/** Problems of a config as written that the schema can't find. A value with an expression is checked after its evaluation. */
export function checkApiConfig(config: JsonObject): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  const given = (key: string) => config[key] !== undefined && config[key] !== null;
  if (given('params') && given('query')) {
    issues.push({ path: ['query'], message: "is set in addition to 'params', which means the same; keep one of them" });
  }
  const problem = typeof config.url === 'string' ? urlProblem(config.url) : undefined;
  if (problem !== undefined) issues.push({ path: ['url'], message: problem });
  const method = given('method') ? config.method : 'GET';
  const [body, ...others] = BODIES.filter(given);
  for (const other of others) {
    issues.push({
      path: [other],
      message: `is set in addition to '${body}'; a request has one body, so keep one of them`,
    });
  }
  if (body !== undefined && typeof method === 'string' && /^(?:GET|HEAD)$/i.test(method)) {
    const message = `can't be sent with ${method.toUpperCase()}; use 'query', or a method such as POST`;
    issues.push({ path: [body], message });
  }
  if (given('paginate') && typeof method === 'string' && !method.includes('${') && !/^GET$/i.test(method)) {
    issues.push({ path: ['paginate'], message: `works with GET alone, not with ${method.toUpperCase()}` });
  }
  const { response } = config;
  if (isMap(response) && !JSON.stringify(response).includes('${')) issues.push(...schemaIssues(response, ['response']));
  if (given('response') && typeof method === 'string' && /^HEAD$/i.test(method))
    issues.push({ path: ['response'], message: 'has no effect with HEAD: the answer has no body' });
  issues.push(...headerIssues(config));
  return issues;
}

function urlProblem(text: string): string | undefined {
  const literal = text.split('${', 1)[0] as string;
  const whole = literal.length === text.length;
  const scheme = /^\s*([A-Za-z][A-Za-z0-9+.-]*):/.exec(literal)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https')
    return `has the scheme '${scheme}'; expected http or https`;
  if (!whole) return /^https?:\/\/[^/?#]*@/i.test(literal) ? USER_INFO : undefined;
  if (!URL.canParse(text)) return 'is not an absolute URL; write https://host/path';
  const url = new URL(text);
  return url.username !== '' || url.password !== '' ? USER_INFO : undefined;
}

const USER_INFO = "holds a user name or password; write them as 'auth: { type: basic, username, password }'";

function headerIssues(config: JsonObject): ConfigIssue[] {
  const headers = config.headers;
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) return [];
  const issues: ConfigIssue[] = [];
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(headers as JsonObject)) {
    const lower = name.toLowerCase();
    const literal = typeof value === 'string' && !value.includes('${') ? value : '';
    let problem = headerProblem(name, literal);
    if (problem === undefined && seen.has(lower)) problem = `header ${name} is given twice`;
    if (problem === undefined && lower === 'authorization' && config.auth !== undefined && config.auth !== null) {
      problem = "header Authorization is set in addition to 'auth', which sets it too; keep one of them";
    }
    if (
      problem === undefined &&
      lower === 'content-type' &&
      config.multipart !== undefined &&
      config.multipart !== null
    ) {
      problem = CONTENT_TYPE_OF_MULTIPART;
    }
    if (problem !== undefined) issues.push({ path: ['headers', name], message: problem });
    seen.add(lower);
  }
  return issues;
}
