import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: {
      'ensemble-orchestrator/node': source('node.ts'),
      'ensemble-orchestrator/testing': source('testing.ts'),
      'ensemble-orchestrator': source('index.ts'),
    },
  },
  test: { include: ['test/**/*.test.ts'], exclude: ['test/runtimes/**', '**/node_modules/**'], testTimeout: 20_000 },
});
