/** The calls of tools that one answer of a model asks for, each as a stored part of the attempt. */

import { isOrchestratorError, type OrchestratorError } from '../../engine/base/errors.ts';
import { isMap } from '../../engine/base/json/is-map.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { describeProblems } from '../../engine/json-schema/check-by-schema.ts';
import type { ModelMessage, ModelToolCall } from '../../engine/operation/model.port.ts';
import type { OperationContext, OperationPart } from '../../engine/operation/operation.port.ts';
import type { ToolAnswer, ToolServers } from '../../engine/operation/tool-server.port.ts';
import type { ThinkConfig } from './config.ts';
import type { Tool } from './toolbox.ts';

export interface ToolCalls {
  readonly context: OperationContext<ThinkConfig>;
  readonly servers: ToolServers;
  readonly tools: readonly Tool[];
}

/** How many calls of one answer run at the same time. */
const CONCURRENCY = 5;
/** The longest result that a model reads, in characters. */
const MAX_RESULT = 65_536;

/**
 * Makes the calls, and waits for all that began.
 *
 * @param first - the number of the first part
 * @returns the messages with their results, in the order of the calls
 * @throws the first failure that a retry of the agent may pass. The results of the other calls are stored
 */
export async function callTools(
  calls: ToolCalls,
  wanted: readonly ModelToolCall[],
  first: number,
): Promise<readonly ModelMessage[]> {
  const messages: ModelMessage[] = [];
  const failures: unknown[] = [];
  const waiting = [...wanted.entries()];
  const work = async () => {
    for (let next = waiting.shift(); next && failures.length === 0; next = waiting.shift()) {
      const [i, call] = next;
      try {
        const { content, isError } = await callTool(calls, call, first + i);
        messages[i] = { role: 'tool', call, result: content, isError };
      } catch (failure) {
        failures.push(failure);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, wanted.length) }, work));
  if (failures.length > 0) throw failures[0];
  return messages;
}

async function callTool(calls: ToolCalls, call: ModelToolCall, number: number): Promise<ToolAnswer> {
  const { context, tools } = calls;
  const tool = tools.find(({ model }) => model.name === call.name);
  const args = readArguments(tool, call, tools);
  const part: OperationPart = { kind: 'tool', number, name: tool ? partName(tool) : call.name.slice(0, 64) };
  if (tool?.kind === 'agent' && 'value' in args) {
    const { output = null, error } = await context.callAgent(tool.agent, args.value, part);
    return error ? { content: error.message, isError: true } : { content: cut(output), isError: false };
  }
  const stored = await context.step(part, (): ToolAnswer | Promise<ToolAnswer> => {
    if (tool?.kind !== 'server' || !('value' in args)) {
      return { content: 'problem' in args ? args.problem : '', isError: true };
    }
    return callServer(calls, tool, args.value, number);
  });
  return stored as unknown as ToolAnswer;
}

function partName(tool: Tool): string {
  return tool.kind === 'agent' ? tool.agent : tool.listed.name;
}

/** The arguments with defaults, or what is wrong with the call, for the model. */
function readArguments(
  tool: Tool | undefined,
  { name, arguments: given }: ModelToolCall,
  tools: readonly Tool[],
): { readonly value: JsonObject } | { readonly problem: string } {
  if (!tool) {
    const near = suggestName(
      name,
      tools.map(({ model }) => model.name),
    );
    return { problem: `there is no tool of this name${near === undefined ? '' : `; did you mean ${near}?`}` };
  }
  if (!isMap(given)) return { problem: 'the arguments are not a JSON object' };
  if (tool.kind !== 'agent' || !tool.check) return { value: given };
  const result = tool.check(given);
  if ('value' in result) return { value: result.value as JsonObject };
  return { problem: `the arguments do not fit: ${describeProblems(result.problems)}` };
}

async function callServer(
  { context, servers }: ToolCalls,
  { at, listed }: Extract<Tool, { kind: 'server' }>,
  args: JsonObject,
  number: number,
): Promise<ToolAnswer> {
  const { signal, idempotencyKey } = context;
  try {
    const { content, isError } = await servers.call(
      at,
      { tool: listed.name, arguments: args, idempotencyKey: `${idempotencyKey}-tool-${number}`, signal },
      listed,
    );
    return { content: cut(content), isError };
  } catch (thrown) {
    if (signal.aborted || !isOrchestratorError(thrown) || thrown.retryable || isOfHost(thrown)) throw thrown;
    // The same call would fail again. The model may do something else.
    return { content: thrown.message, isError: true };
  }
}

/** Whether the failure is about what the host configured, which no model can help. */
function isOfHost({ code }: OrchestratorError): boolean {
  return code === 'NOT_CONFIGURED' || code === 'INTERNAL';
}

/** Cuts a result that is too long for a model. */
function cut(content: Json): Json {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  if (text.length <= MAX_RESULT) return content;
  const rest = text.length - MAX_RESULT;
  return `${text.slice(0, MAX_RESULT)}\n[${rest} more characters are left out: ask for less]`;
}
