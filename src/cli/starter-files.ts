/** The files of a new project. */

export interface StarterFile {
  /** Relative to the project folder, with `/`. */
  readonly path: string;
  readonly text: string;
}

/**
 * @param name - of the npm package
 * @param version - of this package
 */
export function starterFiles(name: string, version: string): readonly StarterFile[] {
  const manifest = {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    scripts: {
      start: 'ensemble run hello --input @inputs/hello.json',
      validate: 'ensemble validate',
      test: 'vitest run',
    },
    dependencies: { 'ensemble-orchestrator': `^${version}` },
    devDependencies: { vitest: '^4.1.0' },
  };
  return [
    { path: 'package.json', text: `${JSON.stringify(manifest, null, 2)}\n` },
    { path: 'ensembles/hello.yaml', text: HELLO },
    { path: 'scripts/greet.mjs', text: GREET },
    { path: 'inputs/hello.json', text: '{ "name": "Ada", "language": "fr" }\n' },
    { path: 'test/hello.test.mjs', text: TEST },
    { path: 'README.md', text: readme(name) },
    { path: '.gitignore', text: 'node_modules/\n.env\n' },
  ];
}

const HELLO = `name: hello
description: Greets somebody, and tells a chat room about it when one is given.

inputs:
  name: { type: string, required: true }
  language: { type: string, enum: [en, fr, de], default: en }
  room: { type: string, description: URL that takes a JSON message }

flow:
  - agent: greet
    operation: code
    config: { script: greet }

  - agent: tell
    operation: api
    condition: \${input.room != null}
    config:
      method: POST
      url: \${input.room}
      body: { text: '\${greet.output.greeting}' }
    retry: { maxAttempts: 3 }

outputs:
  greeting: \${greet.output.greeting}
  told: \${tell.success}
`;

const GREET = `// What a script returns is its agent's output; what it throws fails the agent.
const WORDS = { en: 'Hello', fr: 'Bonjour', de: 'Hallo' };

export default function greet({ input }) {
  return { greeting: \`\${WORDS[input.language]}, \${input.name}!\` };
}
`;

const TEST = `import { loadProject } from 'ensemble-orchestrator/node';
import { createTestOrchestrator, stubHttp } from 'ensemble-orchestrator/testing';
import { expect, test } from 'vitest';

const project = await loadProject(new URL('..', import.meta.url));

test('greets in the language that was asked for', async () => {
  const { orchestrator } = createTestOrchestrator({ ...project, http: stubHttp() });
  const run = await orchestrator.execute('hello', { name: 'Ada', language: 'fr' });
  expect(run.status).toBe('completed');
  expect(run.output).toEqual({ greeting: 'Bonjour, Ada!', told: false });
});

test('tells the room, and tries again when it is busy', async () => {
  const http = stubHttp({ 'POST https://chat.example.com/room': [{ status: 503 }, { status: 204 }] });
  const { orchestrator, clock } = createTestOrchestrator({ ...project, http });
  const before = clock.now();
  const run = await orchestrator.execute('hello', { name: 'Ada', room: 'https://chat.example.com/room' });
  expect(run.output).toEqual({ greeting: 'Hello, Ada!', told: true });
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
| \`npm run validate\` | checks every definition, with line and column |
| \`npm test\` | runs the tests: no network, no waiting |

- \`ensembles/*.yaml\`: what runs, step by step
- \`scripts/*.mjs\`: code that steps call, by file name
- \`inputs/\`: inputs to try it with
- \`test/\`: tests

In an app of your own:

\`\`\`js
import { createOrchestrator } from 'ensemble-orchestrator';
import { loadProject } from 'ensemble-orchestrator/node';

const orchestrator = createOrchestrator(await loadProject(import.meta.dirname));
const run = await orchestrator.execute('hello', { name: 'Ada' });
console.log(run.output.greeting);
\`\`\`
`;
}
