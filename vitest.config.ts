import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

// `.ci/run` names a file here, to add up what ran.
const report = process.env.VITEST_REPORT;

export default defineConfig({
  resolve: {
    alias: {
      'ensemble-orchestrator/node': source('node.ts'),
      'ensemble-orchestrator/testing': source('testing.ts'),
      'ensemble-orchestrator': source('index.ts'),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/runtimes/**', '**/node_modules/**'],
    testTimeout: 20_000,
    reporters: report ? ['default', ['json', { outputFile: report }]] : ['default'],
  },
});
