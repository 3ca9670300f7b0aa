/** The `tools` operation: one call of a tool on a tool server. */

import * as z from 'zod/mini';
import { OrchestratorError } from '../../engine/base/errors.ts';
import type { Json, JsonObject } from '../../engine/base/json/json.ts';
import { once } from '../../engine/base/once.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { toMs, type WrittenDuration } from '../../engine/base/time/duration.ts';
import { durationSchema } from '../../engine/base/time/duration-schema.ts';
import type { Clock } from '../../engine/host/clock.port.ts';
import type { ConfigIssue, Operation } from '../../engine/operation/operation.port.ts';
import { toolNameProblem } from '../../engine/operation/tool-name.ts';
import type { ToolServers, ToolTransport } from '../../engine/operation/tool-server.port.ts';

export interface ToolsOperationDependencies {
  readonly servers: ToolServers;
  readonly clock: Clock;
  /** Whether the host has the option `mcp`. */
  readonly hasMcp: boolean;
}

/** The output of a `tools` agent. */
export interface ToolsOutput {
  readonly tool: string;
  /** The name of the tool server. */
  readonly server: string;
  readonly content: Json;
  /** How long the call took, in ms. */
  readonly duration: number;
  /** The tool reported an error, although its server answered. */
  readonly isError: boolean;
}

/** Null means absent in every field, so that an expression can leave an option out. */
export interface ToolsConfig {
  /** The name of a tool server: an entry of the option `mcpServers`. */
  readonly mcp: string;
  readonly tool: string;
  /** For everything together. Default: that of the server. */
  readonly timeout?: WrittenDuration | null | undefined;
  /** Keeps the server's list of tools. Default false. */
  readonly cacheDiscovery?: boolean | null | undefined;
  /** Seconds. Default 300. */
  readonly cacheTTL?: number | null | undefined;
  /** Default: that of the server. */
  readonly transport?: ToolTransport | null | undefined;
}

const DEFAULT_CACHE_SECONDS = 300;
const MAX_CACHE_SECONDS = 86_400;

// Null means absent, so that an expression can leave an option out. An evaluated value is refused with the message of its schema.
const toolsConfig = once(() => {
  const message = `must be a number of seconds from 0 to ${MAX_CACHE_SECONDS}`;
  const seconds = z.number(message).check(z.gte(0, message), z.lte(MAX_CACHE_SECONDS, message));
  return z.strictObject({
    /** The name of a tool server. */
    mcp: z.string('must be the name of a tool server'),
    tool: z.string('must be the name of a tool'),
    /** For everything together. Default: that of the server. */
    timeout: z.nullish(durationSchema()),
    cacheDiscovery: z.nullish(z.boolean('must be true or false')),
    cacheTTL: z.nullish(seconds),
    /** Default: that of the server. */
    transport: z.nullish(z.enum(['http', 'mcp'], 'must be `http` or `mcp`')),
  });
});

export function toolsOperation(dependencies: ToolsOperationDependencies): Operation<ToolsConfig> {
  const { servers, clock } = dependencies;
  return {
    name: 'tools',
    get config() {
      return toolsConfig() as unknown as Operation<ToolsConfig>['config'];
    },
    check: (config) => checkConfig(config, dependencies),
    output: toolsOutput,
    needs: ({ mcp }) => (typeof mcp === 'string' ? [`mcp:${mcp}`] : []),
    async run({ config, input, idempotencyKey, signal }): Promise<ToolsOutput> {
      const { mcp: server, tool, timeout, cacheDiscovery, cacheTTL, transport } = config;
      if (typeof input !== 'object' || input === null || Array.isArray(input)) {
        const message = `the input of a \`tools\` agent must be an object: it holds the arguments of tool \`${tool}\``;
        throw new OrchestratorError('INVALID_INPUT', message);
      }
      const began = clock.monotonic();
      const { content, isError } = await servers.call(
        { server, transport: transport ?? undefined, timeoutMs: timeout ? toMs(timeout) : undefined },
        { tool, arguments: input as JsonObject, idempotencyKey, signal },
        cacheDiscovery ? { cacheMs: (cacheTTL ?? DEFAULT_CACHE_SECONDS) * 1000 } : undefined,
      );
      return { tool, server, content, duration: Math.round(clock.monotonic() - began), isError };
    },
  };
}

/** Which tool is called on which server is decided when the definition is loaded. */
function checkConfig(
  { mcp, tool, transport }: JsonObject,
  dependencies: ToolsOperationDependencies,
): readonly ConfigIssue[] {
  const issues = Object.entries({ mcp, tool, transport }).flatMap(([key, value]) =>
    typeof value === 'string' && value.includes('${')
      ? [{ path: [key], message: 'must be a plain name: it is decided when the definition is loaded' }]
      : [],
  );
  if (issues.length > 0) return issues;
  const problem = typeof tool === 'string' ? toolNameProblem(tool) : undefined;
  return [
    ...(typeof mcp === 'string' ? serverIssues(mcp, dependencies.servers.names) : []),
    ...(problem === undefined ? [] : [{ path: ['tool'], message: problem }]),
    ...(transport === 'mcp' && !dependencies.hasMcp
      ? [{ path: ['transport'], message: NEEDS_MCP, notConfigured: true }]
      : []),
  ];
}

const NEEDS_MCP = "needs the option `mcp`; pass a client from 'ensemble-orchestrator/mcp' to createOrchestrator";

function serverIssues(name: string, names: readonly string[]): readonly ConfigIssue[] {
  if (names.includes(name)) return [];
  if (names.length === 0) {
    const option = `\`mcpServers: { ${JSON.stringify(name)}: { url } }\``;
    const message = `there is no tool server \`${name}\`; pass it to createOrchestrator with the option ${option}`;
    return [{ path: ['mcp'], message, notConfigured: true }];
  }
  const message = `there is no tool server \`${name}\` (in the option \`mcpServers\`: ${names.slice(0, 10).join(', ')})`;
  const suggestion = suggestName(name, names);
  return [{ path: ['mcp'], message, ...(suggestion !== undefined && { suggestion }) }];
}

function toolsOutput({ mcp, tool }: JsonObject): JsonObject {
  return {
    type: 'object',
    properties: {
      tool: typeof tool === 'string' ? { const: tool } : { type: 'string' },
      server: typeof mcp === 'string' ? { const: mcp } : { type: 'string' },
      content: {},
      duration: { type: 'number' },
      isError: { type: 'boolean' },
    },
    required: ['tool', 'server', 'content', 'duration', 'isError'],
    additionalProperties: false,
  };
}
