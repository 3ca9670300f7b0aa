import { defineConfig } from 'ensemble-orchestrator';
import { nodeHttp } from 'ensemble-orchestrator/node';

// Nothing of the process environment gets in but what is named here, and no call goes to this machine itself unless it is allowed.
export default defineConfig({
  env: ['SHOP_URL'],
  http: nodeHttp({ allow: ['127.0.0.0/8'] }),
});
