import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// The package's own names lead to the source: `ensemble-orchestrator/testing` is src/testing.ts.
const src = fileURLToPath(new URL('./src', import.meta.url));

// `.ci/run` names a file here, to add up what ran.
const report = process.env.VITEST_REPORT;

export default defineConfig({
  resolve: {
    alias: [
      { find: /^ensemble-orchestrator$/, replacement: `${src}/index.ts` },
      { find: /^ensemble-orchestrator\/(.+)$/, replacement: `${src}/$1.ts` },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/runtimes/**', '**/node_modules/**'],
    // Some of the storage suite's cases take 17 s on PGlite, which is one connection.
    testTimeout: 60_000,
    reporters: report ? ['default', ['json', { outputFile: report }]] : ['default'],
  },
});
