/** `ensemble run --dry`: prints what would happen, and does nothing. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { stubHttp } from '../../src/entries/testing.ts';
import { createOrchestrator } from '../../src/index.ts';
import { ensureBuilt, makeFolder } from './cli-process.ts';
import { ensemble } from './in-process.ts';

beforeAll(ensureBuilt, 60_000);

const ORDER = `name: order
inputs: { id: { type: string, required: true } }
flow:
  - { agent: write, operation: code, config: { script: write }, input: "\${input.id}" }
  - { sleep: 2h }
  - { agent: call, operation: api, config: { url: "https://shop.example/\${input.id}", response: { type: object, required: [price], properties: { price: { type: number } } } } }
outputs: { price: "\${call.output.body.price}", write: "\${write.output}" }
`;
const PROJECT = {
  'ensembles/order.yaml': ORDER,
  'scripts/write.mjs':
    "import { writeFileSync } from 'node:fs';\nexport default ({ input }) => { writeFileSync(new URL('../written', import.meta.url), input); return input; };\n",
};

describe('ensemble run --dry', () => {
  it('prints each step with what it would get and give, and runs nothing', async () => {
    const cwd = makeFolder(PROJECT);
    const { code, stdout, stderr } = await ensemble(['run', 'order', '--dry', '--input', '{"id":"o1"}'], { cwd });
    expect(stderr).toBe(`order: a dry run; nothing is sent, written or charged

  flow[0]  write code
      input  "o1"
      config {"script":"write"}
      gives  null (by its types; not declared, so null: output)
  flow[1]  sleeps until ${/until (\S+)/.exec(stderr)?.[1]}
  flow[2]  call api
      input  {"id":"o1"}
      config {"url":"https://shop.example/o1"}
      gives  {"status":200,"headers":{},"body":{"price":1}} (by its types)

1 step with a result whose type is not declared: null. \`ensemble validate --types\` says how to declare it.

✓ order would complete, after waits of 2h 00m
`);
    expect([code, JSON.parse(stdout)]).toEqual([0, { price: 1, write: null }]);
    expect(existsSync(join(cwd, 'written'))).toBe(false);
  });

  it('--run-scripts runs the scripts, and --json prints the record with the plan', async () => {
    const cwd = makeFolder(PROJECT);
    const args = ['run', 'order', '--dry', '--run-scripts', '--json', '--input', '{"id":"o1"}'];
    const { code, stdout } = await ensemble(args, { cwd });
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { dryRun: true, output: { write: 'o1' }, plan: [{}, {}, {}] },
    ]);
    expect(existsSync(join(cwd, 'written'))).toBe(true);
  });

  it('--like takes the results and the input of an execution of the store', async () => {
    const cwd = makeFolder(PROJECT);
    const path = join(cwd, 'store.db');
    const orchestrator = createOrchestrator({
      ensembles: [ORDER.replace('sleep: 2h', 'sleep: 1ms')],
      scripts: { write: () => 'w' },
      http: stubHttp({ 'GET https://shop.example/o7': { json: { price: 250 } } }),
      storage: sqliteStorage({ path }),
    });
    const { id } = await orchestrator.execute('order', { id: 'o7' });
    await orchestrator.close();
    const { code, stdout, stderr } = await ensemble(
      ['run', 'order', '--dry', '--like', id, '--storage', `sqlite:${path}`],
      { cwd },
    );
    expect([code, JSON.parse(stdout)]).toEqual([0, { price: 250, write: 'w' }]);
    expect(stderr).toContain('gives  "w" (as recorded)');
    const unknown = await ensemble(['run', 'order', '--dry', '--like', 'exec_no', '--storage', `sqlite:${path}`], {
      cwd,
    });
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('there is no execution exec_no')]);
  });

  it('ends with 1 when the execution would fail, and says where', async () => {
    const flow =
      'name: bad\nflow: [{ agent: a, operation: code, config: { script: write }, input: "${input.n * 2}" }]\n';
    const cwd = makeFolder({ ...PROJECT, 'ensembles/bad.yaml': flow });
    const { code, stderr } = await ensemble(['run', 'bad', '--dry', '--input', '{"n":"x"}'], { cwd });
    expect(code).toBe(1);
    expect(stderr).toContain('✗ bad would end as failed at a: ');
  });

  it.each([
    [['--like', 'exec_1'], /add --dry/],
    [['--run-scripts'], /add --dry/],
    [['--dry', '--url', 'http://127.0.0.1:1'], /where the execution of --like is/],
    [['--dry', '--signal', 'go'], /no effect in a dry run/],
    [['--dry', '--id', 'mine'], /no effect in a dry run/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await ensemble(['run', 'order', '--input', '{"id":"a"}', ...args], {
      cwd: makeFolder(PROJECT),
    });
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });
});
