import { defineConfig } from 'tsup';

export default defineConfig({
  entry: { index: 'src/index.ts', node: 'src/node.ts', testing: 'src/testing.ts', cli: 'src/cli/main.ts' },
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  external: [/^node:/],
  dts: { entry: { index: 'src/index.ts', node: 'src/node.ts', testing: 'src/testing.ts' } },
  sourcemap: true,
  clean: true,
  silent: true,
  splitting: true,
});
