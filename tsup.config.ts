import { defineConfig } from 'tsup';

const names = [
  'index',
  'node',
  'deno',
  'bun',
  'workers',
  'sqlite',
  'postgres',
  'redis',
  's3',
  'cloudflare',
  'git',
  'liquid',
  'mcp',
  'ai',
  'twilio',
  'sandbox',
  'smtp',
  'pdf',
  'adapter',
  'testing',
];
const entries = Object.fromEntries(names.map((name) => [name, `src/${name}.ts`]));

export default defineConfig({
  entry: {
    ...entries,
    cli: 'src/cli/main.ts',
    'sandbox-thread': 'src/adapters/sandbox/sandbox-thread.ts',
    'pdf-thread': 'src/adapters/pdf/pdf-thread.ts',
  },
  format: 'esm',
  target: 'es2022',
  platform: 'neutral',
  external: [/^node:/],
  dts: { entry: entries },
  clean: true,
  silent: true,
  splitting: true,
});
