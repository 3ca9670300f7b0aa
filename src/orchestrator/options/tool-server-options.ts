/** Checks the option `mcpServers`. No message holds a secret. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import {
  checkedLater,
  duration,
  isText,
  type OptionCheck,
  type OptionChecks,
  oneOf,
  optional,
  readOptions,
  requiredOption,
} from '../../engine/base/read-options.ts';
import { headerProblem } from '../../engine/host/http-header.ts';
import type { McpClient, ToolServerAuth, ToolServerOptions } from '../../engine/operation/tool-server.port.ts';

type Given<T> = { readonly [K in keyof T]?: unknown };

const AUTH_FORMS = "{ type: 'bearer', token } or { type: 'oauth', clientId, clientSecret, tokenUrl }";
const AUTH_KEYS: Readonly<Record<string, readonly string[]>> = {
  bearer: ['type', 'token'],
  oauth: ['type', 'clientId', 'clientSecret', 'tokenUrl'],
};
/** What starts a server as a subprocess in other programs. */
const SUBPROCESS_KEYS = ['command', 'args', 'cwd'];

const CHECKS: OptionChecks<ToolServerOptions> = {
  url: urlProblem,
  auth: checkedLater,
  timeout: duration(),
  secret: optional('text, not empty; leave it out for a server that checks no signature', isText),
  transport: oneOf('http', 'mcp'),
};

/** @throws TypeError; NOT_CONFIGURED for a server that can't be reached so */
export function checkToolServer(name: string, given: ToolServerOptions, mcp: McpClient | undefined): void {
  const what = `createOrchestrator: \`mcpServers.${name}\``;
  if (typeof given !== 'object' || given === null)
    throw new TypeError(`${what} must be { url, auth?, timeout?, secret? }`);
  const { type, auth, transport }: Given<ToolServerOptions> & { readonly type?: unknown } = given;
  if (type === 'stdio' || transport === 'stdio' || SUBPROCESS_KEYS.some((key) => Object.hasOwn(given, key))) {
    throw new OrchestratorError(
      'NOT_CONFIGURED',
      `${what}: servers that run as a subprocess (stdio) are not supported; run the server over HTTP, and give its \`url\``,
    );
  }
  readOptions(what, given, CHECKS);
  if (auth !== undefined) checkAuth(auth, what);
  if (transport === 'mcp' && !mcp) {
    throw new OrchestratorError(
      'NOT_CONFIGURED',
      `${what}: \`transport: 'mcp'\` needs the option \`mcp\`, a client from 'ensemble-orchestrator/mcp'`,
    );
  }
}

/** The values of the option that nobody may read. */
export function toolServerSecrets(servers: Readonly<Record<string, ToolServerOptions>>): readonly string[] {
  return Object.values(servers).flatMap(({ auth, secret }) => [
    ...(auth === undefined ? [] : [auth.type === 'bearer' ? auth.token : auth.clientSecret]),
    ...(secret === undefined ? [] : [secret]),
  ]);
}

function checkAuth(given: unknown, server: string): void {
  const what = `${server}: \`auth\``;
  const { type } = (given ?? {}) as Given<ToolServerAuth>;
  const keys = typeof type === 'string' && Object.hasOwn(AUTH_KEYS, type) ? AUTH_KEYS[type] : undefined;
  if (!keys) throw new TypeError(`${what} must be ${AUTH_FORMS}`);
  const checks = Object.fromEntries(keys.map((key) => [key, AUTH_CHECKS[key] ?? AUTH_TEXT]));
  readOptions(what, given as object, checks as OptionChecks<object>);
}

const AUTH_TEXT = requiredOption('text, not empty; is its variable set?', isText);
const AUTH_CHECKS: Readonly<Record<string, OptionCheck>> = {
  type: checkedLater,
  tokenUrl: urlProblem,
  token: (value) => {
    const problem = AUTH_TEXT(value);
    if (problem !== undefined || headerProblem('Authorization', value as string) === undefined) return problem;
    return 'has a character that a header can not carry, such as a line break';
  },
};

function urlProblem(given: unknown): string | undefined {
  const url = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    return "must be an absolute http or https URL, such as 'https://tools.example/v1'";
  return url.username !== '' || url.password !== '' ? 'holds a user name or password; use `auth`' : undefined;
}
