/** `ensemble graph`: a flow as a Mermaid flowchart, and the marks of an execution. */

import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/entries/node.ts';
import { sqliteStorage } from '../../src/entries/sqlite.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createHandler, createOrchestrator, memoryStorage } from '../../src/index.ts';
import { makeFolder } from './cli-process.ts';
import { ensembleHere } from './in-process.ts';
import { listen } from './served-project.ts';

const ORDER = `name: order
flow:
  - { agent: score, operation: code, config: { script: score } }
  - foreach: \${input.items}
    steps: [{ agent: send, operation: code, config: { script: send }, input: "\${item}", continueOnError: true }]
  - { agent: done, condition: score.output > 1 }
`;
const PROJECT = {
  'ensembles/order.yaml': ORDER,
  'agents/done.yaml': 'name: done\noperation: code\nconfig: { script: score }\n',
  'scripts/score.mjs': 'export default () => 1;\n',
  'scripts/send.mjs': "export default ({ input }) => { if (input === 2) throw new Error('no'); };\n",
};
const DRAWN = `flowchart TD
  n1(["start"])
  n2["score<br/>code"]
  subgraph b3["foreach input.items"]
    n4[["items"]]
    n5["send<br/>code"]
  end
  n6["done<br/>code<br/>only if score.output #62; 1"]
  n7(["end"])
  n1 --> n2
  n2 --> n4
  n4 -->|"each item"| n5
  n5 -->|"next item"| n4
  n4 -->|"done"| n6
  n6 --> n7
`;
const STATES = [
  '  class n1,n2,b3,n7 completed',
  '  class n5 failed',
  '  class n6 skipped',
  '    n5["send (2 of 3)<br/>code"]',
  '  subgraph b3["foreach input.items (3 items)"]',
];

const scripts = {
  score: () => 1,
  send: ({ input }: { input: unknown }) => {
    if (input === 2) throw new Error('no');
    return null;
  },
};

describe('ensemble graph NAME', () => {
  it('draws an ensemble of the project with the shared agents of the project, or a file', async () => {
    const cwd = makeFolder(PROJECT);
    expect(await ensembleHere(['graph', 'order'], cwd)).toEqual({ code: 0, stdout: DRAWN, stderr: '' });
    expect((await ensembleHere(['graph', 'ensembles/order.yaml'], cwd)).stdout).toBe(DRAWN);
    const right = await ensembleHere(['graph', 'order', '--direction', 'lr'], cwd);
    expect(right.stdout).toBe(DRAWN.replace('TD', 'LR'));
  });

  it('suggests the nearest name for an unknown ensemble', async () => {
    expect(await ensembleHere(['graph', 'ordr'], makeFolder(PROJECT))).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: there is no ensemble `ordr`; did you mean `order`?\nThis project has: order\n',
    });
  });

  it('shows the problems of a definition instead of a graph, by name and by file; those of other definitions do not count', async () => {
    const cwd = makeFolder({ ...PROJECT, 'ensembles/bad.yaml': 'name: bad\nflow: [{ agent: nobody }]\n' });
    for (const target of ['bad', 'ensembles/bad.yaml']) {
      const { code, stdout, stderr } = await ensembleHere(['graph', target], cwd);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^ensembles\/bad\.yaml:2:17 flow\[0\]\.agent: .*there is no agent `nobody`/);
      expect(stderr).toContain('✗ 1 problem; nothing was drawn\n');
    }
    expect((await ensembleHere(['graph', 'order'], cwd)).stdout).toBe(DRAWN);
  });

  it('draws without mail, variables and secrets, by name and by file', async () => {
    const cwd = makeFolder({
      'ensemble.config.mjs': "export default { secrets: ['KEY'] };\n",
      'ensembles/tell.yaml': `name: tell
flow:
  - { agent: get, operation: api, config: { url: "\${env.SHOP}", headers: { Authorization: "\${env.KEY}" } }, condition: env.LIVE == 'yes' }
  - { agent: mail, operation: email, config: { to: a@example.com, subject: Hi, body: Hi, from: b@example.com } }
`,
    });
    for (const target of ['tell', 'ensembles/tell.yaml']) {
      const { code, stdout, stderr } = await ensembleHere(['graph', target], cwd);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toContain('mail<br/>email');
    }
    expect((await ensembleHere(['validate'], cwd)).code).toBe(1);
  });

  it.each([
    [['graph'], 'name an ensemble or a file, or an execution with --execution'],
    [['graph', 'order', '--direction', 'up'], '--direction must be TD (top down) or LR (left to right), not "up"'],
    [['graph', 'order', '--url', 'http://127.0.0.1:1'], 'say where an execution is: name it with --execution'],
  ])('%j is wrong usage', async (args, message) => {
    const { code, stdout, stderr } = await ensembleHere(args, makeFolder(PROJECT));
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});

describe('ensemble graph --execution ID', () => {
  it('marks the definition with which an execution of a store began', async () => {
    const cwd = makeFolder(PROJECT);
    const store = ['--storage', `sqlite:${join(cwd, 'data.sqlite')}`];
    const done = { name: 'done', operation: 'code', config: { script: 'score' } };
    const storage = sqliteStorage({ path: join(cwd, 'data.sqlite') });
    const old = createOrchestrator({ ensembles: [ORDER], agents: [done], scripts, storage });
    const { id } = await old.execute('order', { items: [1, 2, 3] });
    await old.close();
    // The current files of the project do not matter.
    const { code, stdout, stderr } = await ensembleHere(['graph', '--execution', id, ...store], cwd);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.split('\n')).toEqual(expect.arrayContaining(STATES));
    const named = await ensembleHere(['graph', 'order', '--execution', id, ...store], cwd);
    expect(named.stdout).toBe(stdout);
    const unknown = await ensembleHere(['graph', '--execution', 'exec_01M7WXNBVAVMY1H8W3JXP6GBWP', ...store], cwd);
    expect(unknown).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: there is no execution exec_01M7WXNBVAVMY1H8W3JXP6GBWP\n',
    });
  });

  it('reads the ensemble and all runs from a running server, with the definition with which the execution began', async () => {
    const cwd = makeFolder({});
    const storage = memoryStorage();
    const done = { name: 'done', operation: 'code', config: { script: 'score' } };
    const given = { agents: [done], scripts, storage };
    const served = createOrchestrator({ ...given, ensembles: [ORDER] });
    const { token } = await served.tokens.create({ name: 't', scopes: ['admin'], plan: 'enterprise' });
    let handler = createHandler(served);
    const url = await listen(createServer((request, response) => void toNodeListener(handler)(request, response)));
    const place = ['--url', url, '--token', token];
    const few = await served.execute('order', { items: [1, 2, 3] });
    const first = await ensembleHere(['graph', '--execution', few.id, ...place], cwd);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout.split('\n')).toEqual(expect.arrayContaining(STATES));

    const many = await served.execute('order', { items: Array.from({ length: 1200 }, () => 1) });
    expect((await ensembleHere(['graph', '--execution', many.id, ...place], cwd)).stdout).toContain(
      'send (1200 times)',
    );

    handler = createHandler(createOrchestrator({ ...given, ensembles: ['name: order\nflow:\n  - agent: done\n'] }));
    const newer = await ensembleHere(['graph', '--execution', few.id, ...place], cwd);
    expect([newer.stderr, newer.stdout]).toEqual(['', first.stdout]);
  });

  it('marks each step that started another ensemble with the status of its execution', async () => {
    const flow = `name: parent
flow:
  - { ensemble: child, name: good, input: { n: 1 } }
  - { ensemble: child, name: bad, input: { n: 2 }, continueOnError: true }
  - { ensemble: child, name: slow, input: { n: 0 }, timeout: 1s, continueOnError: true }
  - { foreach: [1, 2, 1], concurrency: 3, steps: [{ ensemble: child, name: each, input: { n: "\${item}" }, continueOnError: true }] }
  - { parallel: [{ ensemble: child, name: loser, input: { n: 0 } }, { agent: score, operation: code, config: { script: score } }], waitFor: any }
  - { ensemble: child, name: never, condition: "false" }
  - { ensemble: child, name: open, input: { n: 0 } }
`;
    const child = `name: child
flow:
  - { wait: go, condition: input.n == 0 }
  - { agent: send, operation: code, config: { script: send }, input: "\${input.n}" }
`;
    const storage = memoryStorage();
    const served = createTestOrchestrator({ ensembles: [flow, child], scripts, storage });
    const { token } = await served.tokens.create({ name: 't', scopes: ['admin'], plan: 'enterprise' });
    const url = await listen(
      createServer((request, response) => void toNodeListener(createHandler(served))(request, response)),
    );
    const draw = async (id: string) =>
      (await ensembleHere(['graph', '--execution', id, '--url', url, '--token', token], makeFolder({}))).stdout.split(
        '\n',
      );
    const { id } = await served.start('parent');
    await served.clock.advance(2000);
    const drawn = await draw(id);
    expect(drawn).toEqual(
      expect.arrayContaining([
        '  n4[/"ensemble child (timed out)<br/>slow"/]',
        '    n7[/"ensemble child (2 of 3)<br/>each"/]',
        '  class n1,n2,b5,b8,n11 completed',
        '  class n3,n4,n7 failed',
        '  class n14 running',
        '  class n10,n13 skipped',
      ]),
    );
    const { executions } = await served.executions.list({ parentId: id, status: 'waiting' });
    await served.executions.cancel(executions[0]?.id as string);
    await served.clock.advance(1000);
    const ended = await draw(id);
    expect(ended).toContain('  class n3,n4,n7,n14,n15 failed');
    expect(ended).toContain('  class n10,n13 skipped');
    // A retry does not start completed child executions again. A retried child execution is not a step of its parent.
    const again = await served.executions.retry(id);
    await served.clock.advance(2000);
    const failed = await served.executions.list({ parentId: again.id, status: 'failed' });
    await served.executions.retry(failed.executions[0]?.id as string);
    await served.clock.advance(2000);
    const withoutTimes = (lines: readonly string[]) =>
      lines.map((line) => line.replace(/waits since [-:\d ]+/, 'waits'));
    expect(withoutTimes(await draw(again.id))).toEqual(withoutTimes(drawn));
  });
});
