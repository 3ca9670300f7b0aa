import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { forVite } from './scripts/dashboard-assets.ts';

// The names of the package resolve to the source: `ensemble-orchestrator/testing` is src/entries/testing.ts.
const src = fileURLToPath(new URL('./src', import.meta.url));

// `.ci/run` sets a file name, and counts the tests in that report.
const report = process.env.VITEST_REPORT;

export default defineConfig({
  plugins: [forVite],
  resolve: {
    alias: [
      { find: '#dashboard', replacement: `${src}/entries/dashboard.ts` },
      { find: /^ensemble-orchestrator$/, replacement: `${src}/index.ts` },
      { find: /^ensemble-orchestrator\/(.+)$/, replacement: `${src}/entries/$1.ts` },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/runtimes/**', '**/node_modules/**'],
    // By default one processor is left for the main process, which has little to do: half of a machine of two.
    maxWorkers: '100%',
    // Some cases of the storage suite take 17 s on PGlite, which has one connection.
    testTimeout: 60_000,
    // An orchestrator without a logger writes on the console, also where a test expects the failure.
    silent: 'passed-only',
    reporters: report ? ['default', ['json', { outputFile: report }]] : ['default'],
  },
});
