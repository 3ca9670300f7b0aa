/** The key `tools` of a `think` agent: its schema, and the checks at load. */

import * as z from 'zod/mini';
import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { quoted } from '../../engine/base/wording.ts';
import { schemaIssues } from '../../engine/json-schema/check-by-schema.ts';
import type { AgentCall, ConfigIssue } from '../../engine/operation/operation.port.ts';
import type { ToolTransport } from '../../engine/operation/tool-server.port.ts';

/** Tools of a tool server. */
export interface ServerEntry {
  /** The name of an entry of the option `mcpServers`. */
  readonly mcp: string;
  /** Default: all tools that the server lists. */
  readonly tool?: string | readonly string[] | null | undefined;
  readonly transport?: ToolTransport | null | undefined;
}

/** An agent as a tool. */
export interface AgentEntry {
  readonly agent: string;
  /** What the model reads about it. Default: the agent's own. */
  readonly description?: string | null | undefined;
  /** A JSON Schema of type `object`. Without it, any object is accepted. */
  readonly parameters?: JsonObject | null | undefined;
}

export type ToolEntry = ServerEntry | AgentEntry;

export function toolsSchema() {
  const text = z.string('must be text').check(z.minLength(1, 'must not be empty'));
  const message = 'must be `{ mcp, tool?, transport? }` or `{ agent, description?, parameters? }`';
  const server = z.strictObject({
    mcp: text,
    tool: z.nullish(z.union([text, z.array(text)], 'must be the name of a tool, or a list of names')),
    transport: z.nullish(z.enum(['http', 'mcp'], 'must be `http` or `mcp`')),
  });
  const agent = z.strictObject({
    agent: text,
    description: z.nullish(text),
    parameters: z.nullish(z.record(z.string(), z.custom<Json>(), 'must be a JSON Schema of type `object`')),
  });
  return z.nullish(z.array(z.union([server, agent], message), 'must be a list of tools'));
}

function entriesOf(tools: Json | undefined): readonly (readonly [entry: JsonObject, index: number])[] {
  if (!Array.isArray(tools)) return [];
  return (tools as readonly Json[]).flatMap((entry, i) => (isMap(entry) ? [[entry, i] as const] : []));
}

/** The agents among the tools. */
export function agentCalls({ tools }: JsonObject): readonly AgentCall[] {
  return entriesOf(tools).flatMap(([{ agent, parameters }, i]) =>
    isPlainName(agent) ? [{ agent, path: ['tools', i, 'agent'], ...(isMap(parameters) && { input: parameters }) }] : [],
  );
}

/** The tool servers among the tools. */
export function serversOf({ tools }: JsonObject): readonly string[] {
  return entriesOf(tools).flatMap(([{ mcp }]) => (isPlainName(mcp) ? [mcp] : []));
}

function isPlainName(name: Json | undefined): name is string {
  return typeof name === 'string' && name !== '' && !name.includes('${');
}

/** Which tools an agent has is decided when its definition is loaded. @param servers - the names of the tool servers */
export function checkTools({ tools }: JsonObject, servers: readonly string[]): readonly ConfigIssue[] {
  if (typeof tools === 'string' && tools.includes('${'))
    return [{ path: ['tools'], message: `must be a list: ${AT_LOAD}` }];
  return entriesOf(tools).flatMap(([entry, i]) => {
    const path = ['tools', i];
    const issues: ConfigIssue[] = ['mcp', 'agent', 'transport'].flatMap((key) => {
      const value = entry[key];
      const isExpression = typeof value === 'string' && value.includes('${');
      return isExpression ? [{ path: [...path, key], message: `must be a plain name: ${AT_LOAD}` }] : [];
    });
    if (isPlainName(entry.mcp) && !servers.includes(entry.mcp)) issues.push(unknownServer(entry.mcp, path, servers));
    const { parameters } = entry;
    if (isMap(parameters) && !JSON.stringify(parameters).includes('${')) {
      const at = [...path, 'parameters'];
      if (parameters.type !== 'object') issues.push({ path: at, message: 'must be a JSON Schema of type `object`' });
      else issues.push(...schemaIssues(parameters, at));
    }
    return issues;
  });
}

const AT_LOAD = 'the tools are chosen when the definition is loaded';

function unknownServer(name: string, path: readonly (string | number)[], servers: readonly string[]): ConfigIssue {
  const known = servers.length === 0 ? 'none is configured' : `configured: ${servers.slice(0, 10).join(', ')}`;
  const message = `there is no tool server ${quoted(name)} (${known}); set the option ${quoted(`mcpServers.${name}`)} of createOrchestrator`;
  const suggestion = suggestName(name, servers);
  return { path: [...path, 'mcp'], message, notConfigured: true, ...(suggestion !== undefined && { suggestion }) };
}
