/** What the commands say about an execution that waits. */

import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { toNodeListener } from '../../src/entries/node.ts';
import { createTestOrchestrator } from '../../src/entries/testing.ts';
import { createHandler } from '../../src/index.ts';
import { turns } from '../engine/scene.ts';
import { makeFolder } from './cli-process.ts';
import { ensembleHere } from './in-process.ts';
import { listen } from './served-project.ts';

const PATIENT = `name: patient
flow:
  - parallel:
      - { wait: approved, timeout: 24h }
      - { ensemble: child }
      - { agent: call, operation: code, config: { script: late }, retry: { maxAttempts: 2, backoff: fixed, delay: 7200000 } }
      - { foreach: [1, 2, 3], concurrency: 3, steps: [{ wait: item }] }
`;
const CHILD = 'name: child\nflow: [{ sleep: 3h }]\n';
const TIME = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d';

async function serve() {
  const late = () => {
    throw new Error('not yet');
  };
  const served = createTestOrchestrator({ ensembles: [PATIENT, CHILD], scripts: { late } });
  const { token } = await served.tokens.create({ name: 't', scopes: ['admin'], plan: 'enterprise' });
  const listener = toNodeListener(createHandler(served));
  const url = await listen(createServer((request, response) => void listener(request, response)));
  const { id } = await served.start('patient');
  await turns(10);
  const call = async (...args: readonly string[]) =>
    (await ensembleHere([...args, '--url', url, '--token', token], makeFolder({}))).stdout.split('\n');
  const [child] = (await served.executions.list({ parentId: id })).executions;
  return { id, childId: child?.id as string, call };
}

describe('an execution that waits', () => {
  it('`show` lists what it waits for, where, since when and until when', async () => {
    const { id, childId, call } = await serve();
    const lines = await call('execution', 'show', id);
    const at = lines.indexOf('waits for');
    const shown = lines.slice(at + 1, lines.indexOf('', at)).sort();
    const until = (what: string) => new RegExp(`^ {2}${what}, since ${TIME}, until ${TIME} \\(.+\\)$`);
    const since = (what: string) => new RegExp(`^ {2}${what}, since ${TIME}$`);
    const place = (branch: number) => `at flow\\[0\\]\\.parallel\\[${branch}\\]`;
    expect(shown).toEqual([
      expect.stringMatching(since(`the end of child \\(${childId}\\) ${place(1)}`)),
      expect.stringMatching(until(`the next attempt of call ${place(2)}`)),
      expect.stringMatching(until(`the signal approved ${place(0)}`)),
      ...[0, 1, 2].map((item) =>
        expect.stringMatching(since(`the signal item ${place(3)}\\.foreach\\[${item}\\]\\.steps\\[0\\]`)),
      ),
    ]);
  });

  it('`list` names the first wait and counts the others, in a column that other lists do not have', async () => {
    const { id, call } = await serve();
    const [head, ...rows] = await call('execution', 'list');
    expect(head).toMatch(/^ID +ENSEMBLE +STATUS +STARTED +DURATION +WAITS FOR$/);
    const row = rows.find((one) => one.startsWith(id));
    expect(row).toMatch(/ waiting .* (the signal approved|the next attempt of call), .+, and 5 more$/);
    expect(rows.find((one) => / child /.test(one) && !one.startsWith(id))).toMatch(/ the end of a sleep, .+$/);
    expect((await call('execution', 'list', '--status', 'failed')).join('')).not.toContain('WAITS');
  });

  it('`graph` marks the steps at which it waits', async () => {
    const { id, call } = await serve();
    const drawn = (await call('graph', '--execution', id)).join('\n');
    expect(drawn).toMatch(new RegExp(`wait for approved, at most 24h \\(waits since ${TIME}, until ${TIME}\\)`));
    expect(drawn).toMatch(new RegExp(`call \\(waits since ${TIME}, until ${TIME}\\)`));
    expect(drawn).toMatch(new RegExp(`ensemble child \\(waits since ${TIME}\\)`));
    expect(drawn).toContain('wait for item (3 waits)');
    expect(drawn).toMatch(/class \S+ retrying/);
  });
});
