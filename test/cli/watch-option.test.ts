/** `ensemble run --watch`: progress in addition to the record. */

import { beforeAll, expect, it } from 'vitest';
import { ensemble, ensureBuilt, makeFolder } from './cli-process.ts';

beforeAll(ensureBuilt, 60_000);

it('shows progress on stderr with --json too, with a line for a wait', async () => {
  const cwd = makeFolder({
    'ensembles/e.yaml': 'name: e\nflow: [{ agent: a, operation: code, config: { script: a } }, { sleep: 40ms }]\n',
    'scripts/a.mjs': 'export default () => 1;\n',
  });
  const { code, stdout, stderr } = await ensemble(['run', 'e', '--json', '--watch'], { cwd });
  expect([code, JSON.parse(stdout).status]).toEqual([0, 'completed']);
  expect(stderr).toMatch(/^ {2}a {2}completed in \d+ms\n {2}sleep {2}(waits|waited) \d+ms\n {2}sleep {2}is over\n$/);
  expect((await ensemble(['run', 'e', '--json'], { cwd })).stderr).toBe('');
});

it('shows the start and the end of a child execution, and none of its agents', async () => {
  const cwd = makeFolder({
    'ensembles/e.yaml': 'name: e\nflow: [{ ensemble: kid }, { agent: a, operation: code, config: { script: a } }]\n',
    'ensembles/kid.yaml': 'name: kid\nflow: [{ agent: inner, operation: code, config: { script: a } }]\n',
    'scripts/a.mjs': 'export default () => 1;\n',
  });
  const { code, stderr } = await ensemble(['run', 'e', '--json', '--watch'], { cwd });
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /^ {2}kid +started as exec_\w{26}\n {2}kid +completed as exec_\w{26}\n {2}a +completed in \d+ms\n$/,
  );
});
