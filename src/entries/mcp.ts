/**
 * The public names for real servers of the Model Context Protocol.
 *
 * @module ensemble-orchestrator/mcp
 */

export { type McpClientOptions, mcpClient } from '../adapters/mcp/mcp-client.ts';
