/** Checks the option `mcpServers`. No message holds a secret. */

import { DURATION_RULE, isDuration } from '../engine/base/duration.ts';
import { OrchestratorError } from '../engine/base/errors.ts';
import { headerProblem } from '../engine/model/http-header.ts';
import type { McpClient, ToolServerAuth, ToolServerOptions } from '../engine/ports/tool-server.ts';
import { refuseUnknownKeys } from '../engine/base/refuse-unknown-keys.ts';

type Given<T> = { readonly [K in keyof T]?: unknown };

const AUTH_FORMS = "{ type: 'bearer', token } or { type: 'oauth', clientId, clientSecret, tokenUrl }";
const AUTH_KEYS: Readonly<Record<string, readonly string[]>> = {
  bearer: ['type', 'token'],
  oauth: ['type', 'clientId', 'clientSecret', 'tokenUrl'],
};
/** What starts a server as a subprocess in other programs. */
const SUBPROCESS_KEYS = ['command', 'args', 'cwd'];

/** @throws TypeError; NOT_CONFIGURED for a server that can't be reached so */
export function checkToolServer(name: string, given: ToolServerOptions, mcp: McpClient | undefined): void {
  const what = `createOrchestrator: \`mcpServers.${name}\``;
  const refuse = (problem: string) => new TypeError(`${what}: ${problem}`);
  if (typeof given !== 'object' || given === null)
    throw new TypeError(`${what} must be { url, auth?, timeout?, secret? }`);
  const { type, url, auth, timeout, secret, transport }: Given<ToolServerOptions> & { readonly type?: unknown } = given;
  if (type === 'stdio' || transport === 'stdio' || SUBPROCESS_KEYS.some((key) => Object.hasOwn(given, key))) {
    throw new OrchestratorError(
      'NOT_CONFIGURED',
      `${what}: servers that run as a subprocess (stdio) are not supported; run the server over HTTP, and give its \`url\``,
    );
  }
  refuseUnknownKeys(given, ['url', 'auth', 'timeout', 'secret', 'transport'], what);
  checkUrl(url, 'url', refuse);
  if (auth !== undefined) checkAuth(auth, what);
  if (timeout !== undefined && !isDuration(timeout)) throw refuse(`\`timeout\` ${DURATION_RULE}, above 0`);
  if (secret !== undefined && (typeof secret !== 'string' || secret === '')) {
    throw refuse('`secret` must be text, not empty; leave it out for a server that checks no signature');
  }
  if (transport !== undefined && transport !== 'http' && transport !== 'mcp') {
    throw refuse("`transport` must be 'http' or 'mcp'");
  }
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
  const { type, ...fields } = (given ?? {}) as Given<ToolServerAuth>;
  const keys = typeof type === 'string' && Object.hasOwn(AUTH_KEYS, type) ? AUTH_KEYS[type] : undefined;
  if (!keys) throw new TypeError(`${what} must be ${AUTH_FORMS}`);
  refuseUnknownKeys(given as object, keys, what);
  const refuse = (problem: string) => new TypeError(`${what}: ${problem}`);
  for (const key of keys.slice(1)) {
    const value = (fields as Readonly<Record<string, unknown>>)[key];
    if (key === 'tokenUrl') checkUrl(value, key, refuse);
    else if (typeof value !== 'string' || value === '')
      throw refuse(`\`${key}\` must be text, not empty; is its variable set?`);
    else if (key === 'token' && headerProblem('Authorization', value) !== undefined) {
      throw refuse('`token` has a character that a header can not carry, such as a line break');
    }
  }
}

function checkUrl(given: unknown, key: string, refuse: (problem: string) => TypeError): void {
  const url = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw refuse(`\`${key}\` must be an absolute http or https URL, such as 'https://tools.example/v1'`);
  }
  if (url.username !== '' || url.password !== '') {
    throw refuse(`\`${key}\` holds a user name or password; use \`auth\``);
  }
}
