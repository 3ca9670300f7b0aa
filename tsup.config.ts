import { readdirSync } from 'node:fs';
import { defineConfig } from 'tsup';
import { forEsbuild } from './scripts/dashboard-assets.ts';

const names = readdirSync('src/entries').map((file) => file.replace(/\.ts$/, ''));
const entries = {
  index: 'src/index.ts',
  ...Object.fromEntries(names.map((name) => [name, `src/entries/${name}.ts`])),
};

export default defineConfig({
  entry: {
    ...entries,
    cli: 'src/cli/main.ts',
    'sandbox-thread': 'src/adapters/sandbox/sandbox-thread.ts',
    'pdf-thread': 'src/adapters/pdf/pdf-thread.ts',
    'no-dashboard': 'src/http-handlers/dashboard/no-dashboard.ts',
  },
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  external: [/^node:/, '#dashboard'],
  dts: { entry: entries },
  clean: true,
  silent: true,
  splitting: true,
  esbuildPlugins: [forEsbuild],
});
