import { defineConfig } from 'ensemble-orchestrator';
import { nodeHttp } from 'ensemble-orchestrator/node';

// start.mjs sets it: the address of the server in local-server.mjs, which stands for the model and for the tool server.
const local = process.env.LOCAL_SERVER ?? 'http://127.0.0.1:4010';

export default defineConfig({
  // For a real model and a real tool server, change these two lines, for example to
  //   models: { main: { url: 'https://api.openai.com/v1', apiKey: process.env.OPENAI_API_KEY } },
  //   mcpServers: { crm: { url: 'https://crm.example.com', auth: { type: 'bearer', token: process.env.CRM_TOKEN } } },
  models: { main: { url: `${local}/v1` } },
  mcpServers: { crm: { url: `${local}/crm` } },
  // Calls to this machine are refused unless `allow` permits them.
  http: nodeHttp({ allow: ['127.0.0.0/8'] }),
});
