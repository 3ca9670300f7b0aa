/** Checks the arguments of a call against what the tool server lists. */

import { OrchestratorError } from '../../engine/base/errors.ts';
import type { JsonObject } from '../../engine/base/json/json.ts';
import { suggestName } from '../../engine/base/suggest-name.ts';
import { checkJsonSchema } from '../../engine/json-schema/check-json-schema.ts';
import { compileJsonSchema, type ValueCheck } from '../../engine/json-schema/compile-json-schema.ts';
import type { ToolDescription } from '../../engine/operation/tool-server.port.ts';

export type ArgumentsCheck = (
  server: string,
  tool: ToolDescription,
  given: JsonObject,
) => OrchestratorError | undefined;

/** A schema is compiled once. One with keywords that this library lacks is not checked. */
export function argumentsCheck(): ArgumentsCheck {
  const checks = new WeakMap<ToolDescription, ValueCheck>();
  return (server, tool, given) => {
    const { name, inputSchema } = tool;
    if (!inputSchema) return undefined;
    const check = checks.get(tool) ?? compile(inputSchema);
    checks.set(tool, check);
    const result = check(given);
    if ('value' in result) return undefined;
    const problems = result.problems.map(({ path, message }) => (path === '' ? message : `${path} ${message}`));
    const message = `the arguments of tool \`${name}\` of server \`${server}\` do not fit its inputSchema: ${problems.join('; ')}`;
    return new OrchestratorError('INVALID_INPUT', message, { details: { issues: result.problems } });
  };
}

function compile(schema: JsonObject): ValueCheck {
  let isSupported = true;
  checkJsonSchema(schema, [], () => {
    isSupported = false;
  });
  return isSupported ? compileJsonSchema(schema) : (value) => ({ value });
}

/** The failure for a tool that the list of its server lacks. */
export function unknownTool(server: string, tool: string, tools: readonly ToolDescription[]): OrchestratorError {
  const near = suggestName(
    tool,
    tools.map(({ name }) => name),
  );
  const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
  return new OrchestratorError('NOT_FOUND', `tool server \`${server}\` lists no tool \`${tool}\`${hint}`);
}
