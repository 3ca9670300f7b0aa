/** `ensemble serve --watch`: changed definitions, scripts and modules are loaded, and no execution is lost. */

import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt } from './cli-process.ts';
import { begin, makeProject, recordOf, type Served, serveProject, startGate, until } from './served-project.ts';

beforeAll(ensureBuilt, 60_000);

const FLOW = 'flow: [{ agent: a, operation: code, config: { script: a } }]\n';
const FILES = {
  'ensembles/e.yaml': `name: e\n${FLOW}outputs: { text: "\${a.output}" }\n`,
  'scripts/a.mjs': "import { word } from './_lib/word.mjs';\nexport default () => `1 ${word}`;\n",
  'scripts/_lib/word.mjs': "import { sign } from '../../lib/sign.mjs';\nexport const word = `one${sign}`;\n",
  'lib/sign.mjs': "import cjs from './sign.cjs';\nexport const sign = cjs.sign;\n",
  'lib/sign.cjs': "exports.sign = '.';\n",
};

const write = ({ cwd }: Served, file: string, text: string) => writeFileSync(join(cwd, file), text);

async function output(served: Served, name = 'e'): Promise<unknown> {
  const response = await served.api(`/execute/ensemble/${name}`, {});
  return ((await response.json()) as { output?: unknown }).output;
}

const comesTo = (served: Served, wanted: object, name?: string) =>
  until(async () => JSON.stringify(await output(served, name)) === JSON.stringify(wanted));

const watching = async (files: Readonly<Record<string, string>>, args: readonly string[] = []) => {
  const served = await serveProject(makeProject(files), ['--watch', ...args]);
  await served.saw('watching the files of the project');
  return served;
};

describe('ensemble serve --watch', () => {
  it('loads a changed definition, a new one, a changed script, and the modules that it imports; address and token stay', async () => {
    const served = await watching(FILES);
    expect(await output(served)).toEqual({ text: '1 one.' });
    write(served, 'ensembles/e.yaml', `name: e\n${FLOW}outputs: { text: "<\${a.output}>" }\n`);
    await comesTo(served, { text: '<1 one.>' });
    write(served, 'scripts/a.mjs', FILES['scripts/a.mjs'].replace('1 ', '2 '));
    await comesTo(served, { text: '<2 one.>' });
    write(served, 'scripts/_lib/word.mjs', FILES['scripts/_lib/word.mjs'].replace('one', 'two'));
    await comesTo(served, { text: '<2 two.>' });
    write(served, 'lib/sign.mjs', "import cjs from './sign.cjs';\nexport const sign = `!${cjs.sign}`;\n");
    await comesTo(served, { text: '<2 two!.>' });
    write(served, 'lib/sign.cjs', "exports.sign = '?';\n");
    await comesTo(served, { text: '<2 two!?>' });
    mkdirSync(join(served.cwd, 'scripts/deep'));
    write(served, 'scripts/deep/b.mjs', 'export default () => 3;\n');
    write(
      served,
      'ensembles/f.yaml',
      `name: f\n${FLOW.replace('script: a', 'script: deep/b')}outputs: { n: "\${a.output}" }\n`,
    );
    await comesTo(served, { n: 3 }, 'f');
    expect((await served.api('/executions')).status).toBe(200);
  });

  it('a file that an editor replaces is a change', async () => {
    const served = await watching(FILES);
    write(served, 'scripts/a.mjs.tmp', FILES['scripts/a.mjs'].replace('1 ', '2 '));
    renameSync(join(served.cwd, 'scripts/a.mjs.tmp'), join(served.cwd, 'scripts/a.mjs'));
    await comesTo(served, { text: '2 one.' });
  });

  it.each([
    ['a definition', 'ensembles/e.yaml', 'name: e\nflow: [{ agnet: a }]\n', 'did you mean `agent`?'],
    ['a script', 'scripts/a.mjs', 'export default () => {\n', "can't be imported: SyntaxError"],
    ['the project', 'ensembles/f.yaml', `name: e\n${FLOW}`, 'ensemble `e` is defined in ensembles/e.yaml too'],
  ])(
    'prints the problem of %s that is broken, serves the last version, and loads the next valid one',
    async (_, file, text, message) => {
      const served = await watching(FILES);
      write(served, file, text);
      await served.saw('the service continues without the change');
      await served.saw(message);
      expect(await output(served)).toEqual({ text: '1 one.' });
      write(served, file, file === 'ensembles/f.yaml' ? `name: f\n${FLOW}` : FILES[file as keyof typeof FILES]);
      write(served, 'lib/sign.cjs', "exports.sign = '!';\n");
      await comesTo(served, { text: '1 one!' });
    },
  );

  it.each([['memory'], ['sqlite:data.sqlite']])(
    'on %s, a waiting execution survives a reload, and continues with the definition that it began with',
    async (storage) => {
      const flow = 'flow: [{ wait: go, name: go }, { agent: a, operation: code, config: { script: a } }]\n';
      const files = { ...FILES, 'ensembles/w.yaml': `name: w\n${flow}outputs: { old: "\${a.output}" }\n` };
      const served = await watching(files, ['--storage', storage]);
      const id = await begin(served, 'w');
      await recordOf(served, id, 'waiting');
      write(served, 'ensembles/w.yaml', `name: w\n${FLOW}outputs: { new: "\${a.output}" }\n`);
      await comesTo(served, { new: '1 one.' }, 'w');
      write(served, 'scripts/a.mjs', FILES['scripts/a.mjs'].replace('1 ', '2 '));
      await comesTo(served, { new: '2 one.' }, 'w');
      await served.api(`/executions/${id}/signals/go`, null);
      expect((await recordOf(served, id, 'completed')).output).toEqual({ old: '2 one.' });
    },
  );

  it('a step that still runs after its grace runs again with the new script', async () => {
    const gate = await startGate();
    const files = {
      'ensembles/g.yaml':
        'name: g\ninputs: { gate: { type: string } }\nflow: [{ agent: a, operation: code, config: { script: a } }]\noutputs: { by: "${a.output}" }\n',
      'scripts/a.mjs': 'export default async ({ input }) => (await fetch(input.gate)).json();\n',
    };
    const served = await watching(files, ['--storage', 'memory']);
    const id = await begin(served, 'g', { gate: gate.url });
    await gate.reached;
    write(served, 'scripts/a.mjs', "export default () => 'the new script';\n");
    await served.saw('loaded the changed project');
    expect((await recordOf(served, id, 'completed')).output).toEqual({ by: 'the new script' });
    gate.open();
    expect((await recordOf(served, id, 'completed')).output).toEqual({ by: 'the new script' });
  });

  it('stops gracefully after reloads', async () => {
    const served = await watching(FILES);
    write(served, 'lib/sign.cjs', "exports.sign = '!';\n");
    await served.saw('loaded the changed project: 1 ensemble');
    served.child.kill('SIGTERM');
    const { code, stderr } = await served.ended;
    expect([code, stderr.trimEnd().split('\n').at(-1)]).toEqual([0, 'stopped']);
  });

  it('a module that never ends its import is a problem that names it, and the next change is loaded; what a script does later ends nothing', async () => {
    const served = await watching(FILES);
    write(served, 'scripts/a.mjs', 'await new Promise(() => {});\nexport default () => 1;\n');
    await served.saw('its import did not end within 10 s');
    const late = "setTimeout(() => Promise.reject(new Error('too late')), 50);\n";
    const timer = "setTimeout(() => { throw new Error('a timer of a script'); }, 60);\n";
    write(served, 'scripts/a.mjs', `${late}${timer}export default () => 'alive';\n`);
    await comesTo(served, { text: 'alive' });
    await served.saw('too late');
    await served.saw('a timer of a script');
    expect(await output(served)).toEqual({ text: 'alive' });
  }, 60_000);
});
