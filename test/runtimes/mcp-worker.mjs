/** A Worker whose requests share one orchestrator, which calls the tools of a real MCP server. */

import { createOrchestrator, fetchHttp } from 'ensemble-orchestrator';
import { mcpClient } from 'ensemble-orchestrator/mcp';

const ensemble = {
  name: 'words',
  inputs: { words: { type: 'string' } },
  flow: [
    {
      agent: 'counter',
      operation: 'tools',
      config: { mcp: 'text', tool: 'count', cacheDiscovery: true },
      input: { words: '${input.words}' },
    },
    { agent: 'echo', operation: 'tools', config: { mcp: 'text', tool: 'echo' }, input: { words: '${input.words}' } },
  ],
  outputs: { count: '${counter.output.content.count}', blocks: '${echo.output.content}' },
};

let orchestrator;

export default {
  async fetch(request, env) {
    try {
      // The address of the server is known only inside of a request.
      orchestrator ??= createOrchestrator({
        ensembles: [ensemble],
        http: fetchHttp({ allow: ['127.0.0.0/8'] }),
        mcp: mcpClient(),
        mcpServers: { text: { url: env.MCP_URL, transport: 'mcp' } },
      });
      const words = new URL(request.url).searchParams.get('words');
      const { status, output, error } = await orchestrator.execute('words', { words });
      return Response.json({ status, output, error });
    } catch (error) {
      return new Response(String(error?.stack ?? error), { status: 500 });
    }
  },
};
