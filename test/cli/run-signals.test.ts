/** `ensemble run` with a `wait`: a terminal asks, `--signal` answers, and without both the command says how to answer. */

import { describe, expect, it } from 'vitest';
import { makeFolder } from './cli-process.ts';
import { ensembleHere, type Person } from './in-process.ts';

const ask = (flow: string, outputs: string) => ({
  'ask.yaml': `name: ask\nflow:\n${flow}outputs: ${outputs}\n`,
});
const ONE = ask('  - { wait: approved, name: answer }\n', '{ answer: "${answer.output}" }');
const TWO = ask(
  '  - parallel:\n      - { wait: left, name: a }\n      - { wait: right, name: b, timeout: 24h }\n',
  '{ a: "${a.output}", b: "${b.output}" }',
);
const AGAIN = ask(
  '  - { wait: go, name: a }\n  - { wait: go, name: b }\n  - { wait: go, name: c }\n',
  '{ all: ["${a.output}", "${b.output}", "${c.output}"] }',
);

const run = (files: Record<string, string>, more: readonly string[] = [], person?: Person) =>
  ensembleHere(['run', 'ask.yaml', ...more], makeFolder(files), person);
/** Types the next of these texts at each question. */
const person = (...texts: (string | null)[]): Person => ({
  types: (shown) => (shown.endsWith('sends null): ') ? texts.shift() : undefined),
});

describe('without a terminal', () => {
  it('--signal answers a `wait` with its JSON', async () => {
    const { code, stdout } = await run(ONE, ['--signal', 'approved={"by":"Ada","a=b":1}']);
    expect([code, JSON.parse(stdout)]).toEqual([0, { answer: { by: 'Ada', 'a=b': 1 } }]);
  });

  it('several signals of one name are taken in their order; a name alone is null; @file is a file', async () => {
    const given = ['--signal', 'go=1', '--signal', 'go', '--signal', 'go=@three.json'];
    const { code, stdout } = await run({ ...AGAIN, 'three.json': '{"n":3}' }, given);
    expect([code, JSON.parse(stdout)]).toEqual([0, { all: [1, null, { n: 3 }] }]);
  });

  it('--signal answers the `wait` of a child execution too', async () => {
    const files = {
      'ensembles/parent.yaml':
        'name: parent\nflow: [{ ensemble: child }]\noutputs: { got: "${child.output.answer}" }\n',
      'ensembles/child.yaml': ONE['ask.yaml'].replace('name: ask', 'name: child'),
    };
    const ran = await ensembleHere(['run', 'parent', '--signal', 'approved=7'], makeFolder(files));
    expect([ran.code, JSON.parse(ran.stdout)]).toEqual([0, { got: 7 }]);
  });

  it('a run that only waits ends at once with 1, and says how to answer', async () => {
    const { code, stdout, stderr } = await run(ONE);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('✗ ask waits for the signal approved, and nothing here sends it\n');
    expect(stderr).toContain(`--signal 'approved={"key": "value"}'`);
    expect(stderr).toContain('ensemble execution signal ID approved');
  });

  it('--json prints the record of the run that waits', async () => {
    const { code, stdout } = await run(ONE, ['--json']);
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { ensemble: 'ask', status: 'waiting' }]);
  });

  it('it names each signal that is left, also after others were answered', async () => {
    const { code, stderr } = await run(TWO, ['--signal', 'left=1']);
    expect(code).toBe(1);
    expect(stderr).toContain('✗ ask waits for the signal right, and nothing');
    expect((await run(TWO)).stderr).toContain('the signal left and the signal right');
  });

  it('it answers a `wait` that another branch reaches before: after a sleep, or after a signal', async () => {
    const behind = (step: string) =>
      ask(
        `  - parallel:\n      - { wait: left, timeout: 24h }\n      - if: true\n        then: [${step}, { wait: boss, name: b }]\n    waitFor: any\n`,
        '{ b: "${b.output}" }',
      );
    for (const step of ['{ sleep: 50ms }', '{ wait: right }', '{ parallel: [{ wait: right }, { sleep: 50ms }] }']) {
      const right = step.includes('right') ? ['--signal', 'right'] : [];
      const { code, stdout, stderr } = await run(behind(step), [...right, '--signal', 'boss=1']);
      expect([step, code, stdout, stderr]).toEqual([step, 0, '{\n  "b": 1\n}\n', expect.any(String)]);
    }
  });

  it('a run whose `wait` times out within a minute goes on by itself', async () => {
    const flow = '  - { wait: approved, name: answer, timeout: 20ms, onTimeout: continue }\n  - { sleep: 5ms }\n';
    const { code, stdout } = await run(ask(flow, '{ answer: "${answer.output}" }'));
    expect([code, JSON.parse(stdout)]).toEqual([0, { answer: null }]);
  });

  it('an agent that still runs beside the `wait` is not cut off', async () => {
    const flow =
      '  - parallel:\n      - { wait: approved }\n      - { agent: slow, operation: code, config: { script: slow } }\n';
    const files = {
      'ensembles/ask.yaml': ask(flow, '{}')['ask.yaml'],
      'scripts/slow.mjs':
        "export default () => new Promise((r) => setTimeout(() => { console.log('agent done'); r(1); }, 50));\n",
    };
    const { code, stderr } = await ensembleHere(['run', 'ask'], makeFolder(files));
    expect(code).toBe(1);
    expect(stderr).toMatch(/slow +completed[\s\S]*✗ ask waits for the signal approved/);
  });

  it.each([
    ['aproved=1', 'did you mean approved?'],
    ['other', 'its waits take approved'],
    ['approved={by: Ada}', 'is not JSON'],
    ['=1', 'its waits take approved'],
  ])('--signal %s is wrong usage, and nothing runs', async (given, message) => {
    const { code, stdout, stderr } = await run(ONE, ['--signal', given]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('a signal that no `wait` took is named at the end', async () => {
    const { code, stderr } = await run(ONE, ['--signal', 'approved=1', '--signal', 'approved=2']);
    expect(code).toBe(0);
    expect(stderr).toContain('no `wait` took the signal approved of --signal');
  });
});

describe('in a terminal', () => {
  it.each([
    ['{"by":"Ada"}\n', { by: 'Ada' }],
    ['yes, go on\n', 'yes, go on'],
    ['true\n', true],
    ['\n', null],
    ['"quoted"\n', 'quoted'],
  ])('typing %j is the payload %j', async (typed, payload) => {
    const { code, stdout, stderr } = await run(ONE, [], person(typed));
    expect([code, JSON.parse(stdout)]).toEqual([0, { answer: payload }]);
    expect(stderr).toContain('ask waits for the signal approved\n  payload (JSON or text; an empty line sends null): ');
  });

  it('several waits are asked one after the other, with their deadline', async () => {
    const { code, stdout, stderr } = await run(TWO, [], person('1\n', '2\n'));
    expect([code, JSON.parse(stdout)]).toEqual([0, { a: 1, b: 2 }]);
    expect(stderr.match(/waits for the signal (left|right)/g)).toEqual([
      'waits for the signal left',
      'waits for the signal right',
    ]);
    expect(stderr).toMatch(/waits for the signal right, at most \d+h \d\dm/);
  });

  it('text that begins like JSON and is not valid is asked again', async () => {
    const { stdout, stderr } = await run(ONE, [], person('{by: Ada}\n', '{"by":"Ada"}\n'));
    expect(JSON.parse(stdout)).toEqual({ answer: { by: 'Ada' } });
    expect(stderr).toContain('is not valid JSON');
  });

  it('--signal answers before anybody is asked', async () => {
    const { stdout, stderr } = await run(AGAIN, ['--signal', 'go=1'], person('2\n', '3\n'));
    expect(JSON.parse(stdout)).toEqual({ all: [1, 2, 3] });
    expect(stderr.match(/payload \(JSON/g)).toHaveLength(2);
  });

  it('a question ends when its `wait` times out', async () => {
    const flow = '  - { wait: approved, name: answer, timeout: 500ms, onTimeout: continue }\n';
    const { code, stdout, stderr } = await run(ask(flow, '{ answer: "${answer.output}" }'), [], person());
    expect([code, JSON.parse(stdout)]).toEqual([0, { answer: null }]);
    expect(stderr).toContain('payload (JSON');
  });

  it('the end of the input is no answer: the command says how to answer', async () => {
    const { code, stderr } = await run(ONE, [], person(null));
    expect(code).toBe(1);
    expect(stderr).toContain('✗ ask waits for the signal approved, and nothing here sends it');
  });
});
