import { defineConfig } from 'ensemble-orchestrator';
import { nodeHttp } from 'ensemble-orchestrator/node';

// Expressions can read only the process variables that `env` names. Calls to this machine are refused unless `allow` permits them.
export default defineConfig({
  env: ['SHOPS_URL'],
  secrets: ['WEST_TOKEN'],
  http: nodeHttp({ allow: ['127.0.0.0/8'] }),
});
