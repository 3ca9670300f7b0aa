/** The files of a new project. */

export interface StarterFile {
  /** Relative to the project folder, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** The name of the file with the JSON Schema for editors. */
export const SCHEMA_FILE = 'ensemble.schema.json';

export interface StarterParts {
  /** Of the npm package. */
  readonly name: string;
  /** Of this package. */
  readonly version: string;
  /** The JSON Schema of its definitions, as text. */
  readonly schema: string;
  /** Whether this Node.js needs a package for the SQLite file of `ensemble serve`. */
  readonly needsLibsql: boolean;
}

export function starterFiles({ name, version, schema, needsLibsql }: StarterParts): readonly StarterFile[] {
  const manifest = {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    scripts: {
      start: 'ensemble run hello --input @inputs/hello.json',
      serve: 'ensemble serve',
      validate: 'ensemble validate',
      schema: `ensemble schema --dir . > ${SCHEMA_FILE}`,
      test: 'vitest run',
    },
    dependencies: { 'ensemble-orchestrator': `^${version}`, ...(needsLibsql && { libsql: '^0.5.29' }) },
    devDependencies: { vitest: '^4.1.0' },
  };
  return [
    { path: 'package.json', text: `${JSON.stringify(manifest, null, 2)}\n` },
    { path: 'ensembles/hello.yaml', text: HELLO },
    { path: 'scripts/greet.mjs', text: GREET },
    { path: 'inputs/hello.json', text: '{ "name": "Ada", "language": "fr" }\n' },
    { path: 'test/hello.test.mjs', text: TEST },
    { path: SCHEMA_FILE, text: schema },
    { path: 'README.md', text: readme(name) },
    { path: '.env.example', text: ENV_EXAMPLE },
    { path: '.gitignore', text: 'node_modules/\n.env\n' },
  ];
}

const HELLO = `# yaml-language-server: $schema=../${SCHEMA_FILE}
name: hello
description: Greets a person, and posts the greeting to a webhook if the input names one.

inputs:
  name: { type: string, required: true }
  language: { type: string, enum: [en, fr, de], default: en }
  webhook: { type: string, description: URL that accepts a JSON message }

flow:
  - agent: greet
    operation: code
    config: { script: greet }

  - agent: notify
    operation: api
    condition: \${input.webhook != null}
    config:
      method: POST
      url: \${input.webhook}
      body: { text: '\${greet.output.greeting}' }
    retry: { maxAttempts: 3 }

outputs:
  greeting: \${greet.output.greeting}
  notified: \${notify.success}
`;

const ENV_EXAMPLE = `# Copy this file to .env, which stays out of the repository. Expressions read a variable as \${env.NAME}.
# SHOP_URL=https://shop.example.com
`;

const GREET = `// The return value is the output of the agent. If the script throws, the agent fails.
const WORDS = { en: 'Hello', fr: 'Bonjour', de: 'Hallo' };

export default function greet({ input }) {
  return { greeting: \`\${WORDS[input.language]}, \${input.name}!\` };
}
`;

const TEST = `import { loadProject } from 'ensemble-orchestrator/node';
import { createTestOrchestrator, stubHttp } from 'ensemble-orchestrator/testing';
import { expect, test } from 'vitest';

// Git ignores .env, so the tests have values of their own for the variables of the project.
const project = await loadProject(new URL('..', import.meta.url), { env: {} });

test('greets in the language of the input', async () => {
  const { orchestrator } = createTestOrchestrator({ ...project, http: stubHttp() });
  const run = await orchestrator.execute('hello', { name: 'Ada', language: 'fr' });
  expect(run.status).toBe('completed');
  expect(run.output).toEqual({ greeting: 'Bonjour, Ada!', notified: false });
});

test('posts to the webhook, and retries when it is busy', async () => {
  const http = stubHttp({ 'POST https://chat.example.com/hook': [{ status: 503 }, { status: 204 }] });
  const { orchestrator, clock } = createTestOrchestrator({ ...project, http });
  const before = clock.now();
  const run = await orchestrator.execute('hello', { name: 'Ada', webhook: 'https://chat.example.com/hook' });
  expect(run.output).toEqual({ greeting: 'Hello, Ada!', notified: true });
  expect(http.calls.map((call) => call.json)).toEqual([{ text: 'Hello, Ada!' }, { text: 'Hello, Ada!' }]);
  // The wait before the second attempt took no real time.
  expect(clock.now() - before).toBe(1000);
});

test('refuses an input that does not fit', async () => {
  const { orchestrator } = createTestOrchestrator(project);
  await expect(orchestrator.execute('hello', { language: 'fr' })).rejects.toMatchObject({ code: 'INVALID_INPUT' });
});
`;

function readme(name: string): string {
  return `# ${name}

A project for [ensemble-orchestrator](https://www.npmjs.com/package/ensemble-orchestrator).

| command | what it does |
|---|---|
| \`npm start\` | runs the ensemble \`hello\` on \`inputs/hello.json\` |
| \`npm run serve\` | serves the ensembles over HTTP |
| \`npm run validate\` | checks every definition, with line and column |
| \`npm run schema\` | writes \`${SCHEMA_FILE}\` again, with the names of new scripts, agents and ensembles |
| \`npm test\` | runs the tests: no network, no waiting |

- \`ensembles/*.yaml\`: the workflows
- \`scripts/*.mjs\`: code that steps run, named by its file
- \`inputs/\`: example inputs
- \`${SCHEMA_FILE}\`: what editors know about the workflows, by the first line of each file
- \`.env.example\`: copy it to \`.env\` for variables
- \`test/\`: tests

In your own app:

\`\`\`js
import { createOrchestrator } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';

const orchestrator = createOrchestrator(await loadProject(import.meta.dirname));
const run = await orchestrator.execute('hello', { name: 'Ada' });
console.log(run.output.greeting);
\`\`\`
`;
}
