/** `ensemble run`: only the output on stdout, the progress on stderr. */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { CLI, ensemble as ensembleProcess, ensureBuilt, makeFolder, startEnsemble } from './cli-process.ts';
import { ensemble } from './in-process.ts';

beforeAll(ensureBuilt, 60_000);

const code = (name: string, more = '') =>
  `  - { agent: ${name}, operation: code, config: { script: ${name} }${more} }\n`;
const GREET = {
  'ensembles/greet.yaml': `name: greet\ninputs: { who: { type: string, required: true } }\nflow:\n${code('hello')}outputs: { text: "\${hello.output}" }\n`,
  'scripts/hello.mjs': 'export default ({ input }) => `Hello ${input.who}`;\n',
};
const ADA = '{"who":"Ada"}';

describe('ensemble run', () => {
  it('prints the output on stdout, and a line for each agent on stderr', async () => {
    const cwd = makeFolder(GREET);
    const { code, stdout, stderr } = await ensemble(['run', 'greet', '--input', ADA], { cwd });
    expect([code, stdout]).toEqual([0, '{\n  "text": "Hello Ada"\n}\n']);
    expect(stderr).toMatch(/^ {2}hello {2}completed in \d+ms\n✓ greet completed in \d+ms, 1 agent\n$/);
  });

  it('runs an ensemble by its file in a project', async () => {
    const cwd = makeFolder(GREET);
    const { code, stdout } = await ensemble(['run', 'ensembles/greet.yaml', '--input', ADA], { cwd });
    expect([code, JSON.parse(stdout)]).toEqual([0, { text: 'Hello Ada' }]);
  });

  it('runs a file outside a project, by itself and with --dir', async () => {
    const folder = makeFolder({
      'alone.yaml': 'name: alone\nflow: []\noutputs: { twice: "${input.n * 2}" }\n',
      'other.yaml': GREET['ensembles/greet.yaml'],
    });
    const alone = await ensemble(['run', 'alone.yaml', '--input', '{"n":21}'], { cwd: folder });
    expect([alone.code, JSON.parse(alone.stdout)]).toEqual([0, { twice: 42 }]);
    const project = makeFolder(GREET);
    const other = await ensemble(['run', join(folder, 'other.yaml'), '--dir', project, '--input', ADA], {
      cwd: folder,
    });
    expect([other.code, JSON.parse(other.stdout)]).toEqual([0, { text: 'Hello Ada' }]);
  });

  it('ends with 1 when the execution fails, and names the agent and its message', async () => {
    const cwd = makeFolder({
      'ensembles/pay.yaml': `name: pay\nflow:\n${code('charge')}outputs: { paid: "\${charge.success}" }\n`,
      'scripts/charge.mjs': "export default () => { throw new Error('card refused'); };\n",
    });
    const { code: exit, stdout, stderr } = await ensemble(['run', 'pay'], { cwd });
    expect(exit).toBe(1);
    expect(stderr).toMatch(
      / {2}charge {2}failed in \d+ms: card refused\n✗ pay failed at charge after \d+ms, 1 agent: card refused\n {4}at .*charge\.mjs:1:\d+\)\n/,
    );
    expect(stdout).toBe('');
    const { stdout: json } = await ensemble(['run', 'pay', '--json'], { cwd });
    expect(JSON.parse(json)).toMatchObject({ status: 'failed', partialOutput: { paid: false } });
  });

  it('--json prints only the record', async () => {
    const cwd = makeFolder({
      ...GREET,
      'scripts/hello.mjs': "export default () => { console.log('noise'); return 1; };\n",
    });
    const { code, stdout, stderr } = await ensembleProcess(['run', 'greet', '--json', '--input', ADA], { cwd });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      ensemble: 'greet',
      status: 'completed',
      input: { who: 'Ada' },
      agents: [{ name: 'hello', output: 1 }],
    });
    expect(stderr).toBe('noise\n');
  });

  it('--json ends with 1 for a failed execution too, and prints its record', async () => {
    const cwd = makeFolder({ ...GREET, 'scripts/hello.mjs': "export default () => { throw new Error('no'); };\n" });
    const { code, stdout } = await ensemble(['run', 'greet', '--json', '--input', ADA], { cwd });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ status: 'failed', error: { agent: 'hello', message: 'no' } });
  });

  it('keeps what scripts print and log out of stdout', async () => {
    const script =
      "export default ({ logger }) => { console.log('printed'); logger.info({ n: 1 }, 'logged'); return 1; };\n";
    const cwd = makeFolder({ ...GREET, 'scripts/hello.mjs': script });
    const { stdout, stderr } = await ensembleProcess(['run', 'greet', '--input', ADA], { cwd });
    expect(JSON.parse(stdout)).toEqual({ text: 1 });
    expect(stderr).toMatch(/^printed\ninfo {2}logged \{"agent":"hello","n":1\}\n/);
  });

  it('shows failed attempts and their number', async () => {
    const cwd = makeFolder({
      'ensembles/e.yaml': `name: e\nflow:\n${code('flaky', ', retry: { maxAttempts: 3, backoff: fixed, delay: 1 }')}`,
      'scripts/flaky.mjs':
        'let n = 0;\nexport default () => { if (++n < 3) throw new Error(`busy ${n}\\n\\u001b[31m`); return n; };\n',
    });
    const { code: exit, stderr } = await ensemble(['run', 'e'], { cwd });
    expect(exit).toBe(0);
    const lines = stderr.split('\n');
    expect(lines[0]).toMatch(/^ {2}flaky {2}attempt 1 failed, (next in \d+ms|retried): busy 1 \ufffd\[31m$/);
    expect(lines[1]).toMatch(/^ {2}flaky {2}attempt 2 failed, (next in \d+ms|retried): busy 2 \ufffd\[31m$/);
    expect(lines[2]).toMatch(/^ {2}flaky {2}completed in \d+ms, 3 attempts$/);
  });

  it('writes ten lines for a large foreach, and one line for the rest', async () => {
    const steps = `name: e\nflow:\n  - foreach: \${input.items}\n    steps:\n    ${code('one')}`;
    const cwd = makeFolder({ 'ensembles/e.yaml': steps, 'scripts/one.mjs': 'export default () => 1;\n' });
    const items = JSON.stringify({ items: Array.from({ length: 1200 }, (_, i) => i) });
    const { stderr } = await ensemble(['run', 'e', '--input', items], { cwd });
    expect(stderr.match(/one {2}completed in/g)).toHaveLength(10);
    expect(stderr).toMatch(/^ {2}one {2}completed in \d+ms \(item 7\)$/m);
    expect(stderr).toContain('  one  completed 1,190 more times\n');
  });

  it('reads the input from a file and from standard input', async () => {
    const cwd = makeFolder({ ...GREET, 'ada.json': `\ufeff${ADA}` });
    for (const options of [
      ['--input', '@ada.json'],
      ['--input', '@-'],
    ]) {
      const { stdout } = await ensemble(['run', 'greet', ...options], { cwd, stdin: ADA });
      expect(JSON.parse(stdout)).toEqual({ text: 'Hello Ada' });
    }
  });

  it.each([
    ['an input that is not JSON', ['run', 'greet', '--input', '{who: Ada}'], 2, '--input is not JSON: '],
    ['a file that is not JSON', ['run', 'greet', '--input', '@bad.json'], 2, 'bad.json is not JSON: '],
    [
      'a file that is missing',
      ['run', 'greet', '--input', '@none.json'],
      1,
      'there is no file none.json (--input @none.json)',
    ],
    [
      'an input that does not fit',
      ['run', 'greet', '--input', '{}'],
      1,
      'the input of `greet` does not fit: who is required',
    ],
    [
      'an unknown name',
      ['run', 'great'],
      1,
      'there is no ensemble `great`; did you mean `greet`?\nThis project has: greet\n',
    ],
    ['a file that is not there', ['run', 'none.yaml'], 1, 'there is no file or folder none.yaml'],
    ['a folder', ['run', './ensembles'], 2, './ensembles is a folder; name one of its files'],
    ['a variable that is not set', ['run', 'greet', '--env', 'NOT_SET'], 1, '--env names NOT_SET, which is not set'],
    [
      'a variable with its value',
      ['run', 'greet', '--env', 'KEY=secret'],
      2,
      '--env takes the name of a variable, not its value: set KEY in the shell and write --env KEY\n',
    ],
  ])('explains %s without a stack trace', async (_what, args, exit, message) => {
    const cwd = makeFolder({ ...GREET, 'bad.json': '{' });
    const { code, stdout, stderr } = await ensemble(args, { cwd });
    expect([code, stdout]).toEqual([exit, '']);
    expect(stderr).toContain(`error: ${message}`);
    expect(stderr).not.toContain('    at ');
  });

  it('prints the problems of a definition instead of running it', async () => {
    const cwd = makeFolder({ ...GREET, 'scripts/hello.mjs': 'export const nothing = 1;\n' });
    const { code, stdout, stderr } = await ensemble(['run', 'greet', '--input', ADA], { cwd });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(
      'scripts/hello.mjs: has no default export; a script is `export default (context) => output`',
    );
    expect(stderr.endsWith('✗ 1 problem; nothing was run\n')).toBe(true);
  });

  it('ends although a script left a timer or a connection open', async () => {
    const cwd = makeFolder({
      ...GREET,
      'scripts/hello.mjs': 'setInterval(() => {}, 1000);\nexport default () => 1;\n',
    });
    expect((await ensemble(['run', 'greet', '--input', ADA], { cwd })).code).toBe(0);
  });

  it('writes the whole output, however large it is', async () => {
    const cwd = makeFolder({ ...GREET, 'scripts/hello.mjs': "export default () => 'x'.repeat(3_000_000);\n" });
    const { stdout } = await ensemble(['run', 'greet', '--input', ADA], { cwd });
    expect(JSON.parse(stdout).text).toHaveLength(3_000_000);
  });

  it.skipIf(process.platform === 'win32')('ends in peace when its reader has seen enough', () => {
    const cwd = makeFolder({ ...GREET, 'scripts/hello.mjs': "export default () => 'x'.repeat(3_000_000);\n" });
    const command = `"${process.execPath}" "${CLI}" run greet --input '${ADA}' | head -n 1`;
    const { stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, encoding: 'utf8' });
    expect(stdout).toBe('{\n');
    expect(stderr).toMatch(/✓ greet completed in \d+ms, 1 agent\n$/);
  });
});

describe('variables', () => {
  const ENV = {
    'ensembles/e.yaml': 'name: e\nflow: []\noutputs: { a: "${env.A}" }\n',
  };

  it('reads no variable of the process that is not named', async () => {
    const cwd = makeFolder(ENV);
    const { code, stderr } = await ensemble(['run', 'e'], { cwd, env: { A: 'from the process' } });
    expect(code).toBe(1);
    expect(stderr).toContain('ensembles/e.yaml:3:');
    const named = await ensemble(['run', 'e', '--env', 'A'], { cwd, env: { A: 'from the process' } });
    expect(JSON.parse(named.stdout)).toEqual({ a: 'from the process' });
  });

  it('outside a project, a variable without a value names the option', async () => {
    const cwd = makeFolder({ 'e.yaml': ENV['ensembles/e.yaml'] });
    const { code, stderr } = await ensemble(['run', 'e.yaml'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('variable `A` is not set: set it for the process and pass `--env A`');
  });

  it('masks secrets in its output', async () => {
    const cwd = makeFolder({
      'ensembles/e.yaml': 'name: e\nflow:\n  - { agent: x, operation: code, config: { script: leak } }\n',
      'scripts/leak.mjs':
        'export default ({ env, logger }) => { logger.warn({}, `key ${env.API_KEY}`); throw new Error(`401 for ${env.API_KEY}`); };\n',
      'ensemble.config.mjs': "export default { secrets: ['API_KEY'] };\n",
      '.env': 'API_KEY=correct-horse-battery\n',
    });
    const { code, stdout, stderr } = await ensemble(['run', 'e'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('x failed'.slice(2));
    expect(stdout + stderr).not.toContain('correct-horse');
    const json = await ensemble(['run', 'e', '--json'], { cwd });
    expect(json.stdout + json.stderr).not.toContain('correct-horse');
  });
});

describe('Ctrl-C', () => {
  const WAIT = {
    'ensembles/e.yaml': `name: e\nflow:\n${code('wait')}${code('after')}`,
    'scripts/after.mjs': 'export default () => 1;\n',
  };

  it('cancels the execution: the signal of the step is aborted, no further step begins, the exit code is 130', async () => {
    const script = [
      'export default ({ signal }) => new Promise((resolve) => {',
      "  const timer = setTimeout(resolve, 60_000); console.error('waiting');",
      "  signal.addEventListener('abort', () => { console.error('signalled'); clearTimeout(timer); resolve(); });",
      '});\n',
    ].join('\n');
    const { child, saw, ended } = startEnsemble(['run', 'e'], {
      cwd: makeFolder({ ...WAIT, 'scripts/wait.mjs': script }),
    });
    await saw('waiting');
    child.kill('SIGINT');
    const { code: exit, stderr } = await ended;
    expect(exit).toBe(130);
    expect(stderr).toContain('cancelling; press Ctrl-C again to stop at once\n');
    expect(stderr).toContain('signalled\n');
    expect(stderr).not.toMatch(/^ {2}after /m);
    expect(stderr).toMatch(/✗ e cancelled after \d/);
  });

  it('a second signal ends the process, whatever the step does', async () => {
    const script = "export default () => new Promise(() => { setInterval(() => {}, 1000); console.error('deaf'); });\n";
    const { child, saw, ended } = startEnsemble(['run', 'e'], {
      cwd: makeFolder({ ...WAIT, 'scripts/wait.mjs': script }),
    });
    await saw('deaf');
    child.kill('SIGINT');
    await saw('cancelling');
    child.kill('SIGINT');
    expect((await ended).code).toBe(130);
  });
});
