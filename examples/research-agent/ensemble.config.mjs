import { defineConfig } from 'ensemble-orchestrator';
import { nodeHttp } from 'ensemble-orchestrator/node';

// start.mjs sets it: the address of the server in local-server.mjs, which stands for the models and for the library.
const local = process.env.LOCAL_SERVER ?? 'http://127.0.0.1:4011';

export default defineConfig({
  // For real models and a real tool server, change these two lines, for example to
  //   models: { main: { url: 'https://api.openai.com/v1', apiKey: process.env.OPENAI_API_KEY } },
  //   mcpServers: { library: { url: 'https://library.example.com', transport: 'mcp' } },
  models: { main: { url: `${local}/v1` } },
  mcpServers: { library: { url: `${local}/library` } },
  // Calls to this machine are refused unless `allow` permits them.
  http: nodeHttp({ allow: ['127.0.0.0/8'] }),
});
