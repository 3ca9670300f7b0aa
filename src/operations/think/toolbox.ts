/** The tools of a conversation: their names, and what each one is. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { checkBySchema } from '../../engine/json-schema/check-by-schema.ts';
import type { ValueCheck } from '../../engine/json-schema/rule.ts';
import type { ModelTool } from '../../engine/operation/model.port.ts';
import type { OperationContext } from '../../engine/operation/operation.port.ts';
import type { ToolDescription, ToolServerCall, ToolServers } from '../../engine/operation/tool-server.port.ts';
import type { ThinkConfig } from './config.ts';
import type { AgentEntry, ServerEntry } from './tools-config.ts';

/** A tool that the model may call. */
export type Tool = { readonly model: ModelTool } & (
  | { readonly kind: 'server'; readonly at: ToolServerCall; readonly listed: ToolDescription }
  | { readonly kind: 'agent'; readonly agent: string; readonly check: ValueCheck | undefined }
);

export interface Toolbox {
  readonly tools: readonly Tool[];
  /** The number of parts that the lists of the tool servers take. */
  readonly parts: number;
}

type Draft = { readonly [K in 'server' | 'agent']: Omit<Extract<Tool, { kind: K }>, 'model'> }['server' | 'agent'] & {
  readonly name: string;
  readonly otherName: string;
  readonly description: string | undefined;
  readonly schema: JsonObject | undefined;
};

const MAX_TOOLS = 128;

/**
 * Lists the tools. What a tool server lists is stored, as the parts of kind `tool` from number 1: the names mean the same tools after
 * a crash and on every attempt.
 *
 * @throws as the port `ToolServers`; OrchestratorError for a tool that a server does not list, and for too many tools
 */
export async function openToolbox(context: OperationContext<ThinkConfig>, servers: ToolServers): Promise<Toolbox> {
  const entries = context.config.tools ?? [];
  const lists = entries.filter((entry) => 'mcp' in entry);
  const listed = await Promise.all(lists.map((entry, i) => listTools(entry, i + 1, context, servers)));
  const drafts = entries.flatMap((entry, i): readonly Draft[] =>
    'mcp' in entry
      ? (listed[lists.indexOf(entry)] ?? []).map((tool) => serverDraft(entry, tool))
      : [agentDraft(entry, i, context)],
  );
  if (drafts.length > MAX_TOOLS) {
    const message = `the agent has ${drafts.length} tools; a model takes at most ${MAX_TOOLS}: choose some with \`tool\``;
    throw new OrchestratorError('INVALID_INPUT', message);
  }
  const names = new Set<string>();
  return { tools: drafts.map((draft) => withModelName(draft, names)), parts: lists.length };
}

async function listTools(
  { mcp, tool, transport }: ServerEntry,
  number: number,
  context: OperationContext<ThinkConfig>,
  servers: ToolServers,
): Promise<readonly ToolDescription[]> {
  const stored = await context.step({ kind: 'tool', number, name: `${mcp} (list of tools)` }, async () => {
    const at = { server: mcp, transport: transport ?? undefined };
    const all = await servers.list({ ...at, cacheMs: 0, signal: context.signal });
    return { content: tool ? chooseTools(all, typeof tool === 'string' ? [tool] : tool, mcp) : all, isError: false };
  });
  return (stored as unknown as { readonly content: readonly ToolDescription[] }).content;
}

function chooseTools(
  all: readonly ToolDescription[],
  names: readonly string[],
  server: string,
): readonly ToolDescription[] {
  return names.map((name) => {
    const found = all.find((tool) => tool.name === name);
    if (found) return found;
    const near = suggestName(
      name,
      all.map((tool) => tool.name),
    );
    const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
    throw new OrchestratorError('NOT_FOUND', `tool server \`${server}\` lists no tool \`${name}\`${hint}`);
  });
}

function serverDraft({ mcp: server, transport }: ServerEntry, listed: ToolDescription): Draft {
  const { name, description, inputSchema: schema } = listed;
  const at = { server, transport: transport ?? undefined };
  return { kind: 'server', at, listed, name, otherName: `${server}_${name}`, description, schema };
}

function agentDraft(entry: AgentEntry, index: number, context: OperationContext<ThinkConfig>): Draft {
  const { agent, parameters } = entry;
  const check = parameters ? checkBySchema(parameters, ['tools', index, 'parameters'], 'the input') : undefined;
  const description = entry.description ?? context.describeAgent(agent);
  return {
    kind: 'agent',
    agent,
    check,
    name: agent,
    otherName: `agent_${agent}`,
    description,
    schema: parameters ?? undefined,
  };
}

const MAX_NAME = 64;

/** Gives a tool the name that the model reads: its own, if no tool before it has the same. */
function withModelName({ name, otherName, description, schema, ...tool }: Draft, names: Set<string>): Tool {
  const own = [name, otherName].map((one) => one.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME) || '_');
  let free = own.find((one) => !names.has(one));
  for (let i = 2; free === undefined; i++) {
    const numbered = `${own[1]?.slice(0, MAX_NAME - 4)}_${i}`;
    if (!names.has(numbered)) free = numbered;
  }
  names.add(free);
  const inputSchema = { ...schema, type: 'object', properties: schema?.properties ?? {} };
  return { ...tool, model: { name: free, ...(description !== undefined && { description }), inputSchema } };
}
